"""Which dataset a person means: an id, or a manifest file as `dataset prepare` printed it."""

from __future__ import annotations

import json
from pathlib import Path

from resources.errors import IntegrityError, NotFound, SrBenchError
from resources.store import Store
from sr_bench_assets.datasets.artifact import DatasetManifest, load_manifest, manifest_beside


def named_dataset(store: Store, name: str) -> DatasetManifest:
    """The dataset of a manifest file, or of an id (or unique beginning of one) in `store`."""
    path = Path(name)
    if not path.is_file():
        if path.suffix == ".json" or "/" in name:
            raise NotFound(f"There is no file {name}.", mend="Give a manifest file, or the id of a dataset.")
        return load_manifest(store, name)
    try:
        document = json.loads(path.read_bytes())
        cases, dataset_id, sha256 = document["path"], document["id"], document["sha256"]
    except (ValueError, KeyError, TypeError) as error:
        raise SrBenchError(
            f"{name} is no dataset manifest.", mend="Give a file that `sr-bench dataset prepare` printed."
        ) from error
    manifest = manifest_beside(cases)
    if (manifest.id, manifest.sha256) != (dataset_id, sha256):
        raise IntegrityError(
            f"{name} states another dataset than the one at {cases}.",
            code="changed_dataset",
            mend="Print the manifest again with `sr-bench dataset show ID`.",
        )
    return manifest
