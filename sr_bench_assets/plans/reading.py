"""Reading a manifest that a person wrote: YAML or JSON, its paths and references resolved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from resources.documents import read_document
from resources.errors import Problems, SrBenchError
from resources.store import Store
from sr_bench_assets.plans.draft import draft_of_document
from sr_bench_assets.plans.manifest import Manifest
from sr_bench_assets.plans.references import resolve_references


def read_raw(path: Path, store: Store) -> tuple[Any, list[SrBenchError]]:
    """The document at `path` with a relative `dataset.path` resolved against its folder and references to
    registered targets replaced by these; problems of references come beside it.

    Raises `NotFound` or `SrBenchError` when there is no readable document.
    """
    return resolve_document(read_document(path), path.resolve().parent, store)


def resolve_document(document: Any, folder: Path, store: Store) -> tuple[Any, list[SrBenchError]]:
    """`document` with its relative paths taken from `folder`, and its references resolved; see `read_raw`."""
    if isinstance(document, dict):
        dataset = document.get("dataset")
        if isinstance(dataset, dict) and isinstance(dataset.get("path"), str) and dataset["path"]:
            located = (folder / Path(dataset["path"]).expanduser()).resolve()
            document = {**document, "dataset": {**dataset, "path": str(located)}}
    return resolve_references(document, store)


def read_manifest(path: Path, store: Store) -> Manifest:
    """The manifest at `path`.

    Raises `Problems` with every structural problem: unknown and missing fields, wrong types and values, bad
    references. What needs the dataset or the environment is `freeze`'s to find.
    """
    document, problems = read_raw(path, store)
    _, manifest, found = draft_of_document(document)
    problems += found
    if manifest is None or problems:
        raise Problems(f"{path} is no valid manifest: {len(problems)} problem(s).", problems)
    return manifest
