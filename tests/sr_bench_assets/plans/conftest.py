"""A store of its own with one dataset, and ways to freeze documents."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from resources.errors import Problems
from resources.store import Store
from sr_bench_assets.datasets.artifact import DatasetManifest
from sr_bench_assets.plans.freeze import freeze_file
from sr_bench_assets.plans.manifest import FrozenPlan
from tests.planning import publish_cases

Freeze = Callable[..., FrozenPlan]
ProblemsOf = Callable[..., dict[str, str]]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store")


@pytest.fixture
def dataset(store: Store) -> DatasetManifest:
    return publish_cases(store)


@pytest.fixture
def freeze_document(store: Store, tmp_path: Path) -> Freeze:
    """Write a document as a JSON manifest and freeze it."""

    def run(document: Mapping[str, Any], env: Mapping[str, str] | None = None) -> FrozenPlan:
        path = tmp_path / "manifest.json"
        path.write_text(json.dumps(document), encoding="utf-8")
        return freeze_file(path, store, env or {})

    return run


@pytest.fixture
def problems_of(freeze_document: Freeze) -> ProblemsOf:
    """The problems of a document: field → message. Every problem must name field, cause and mend."""

    def run(document: Mapping[str, Any], env: Mapping[str, str] | None = None) -> dict[str, str]:
        with pytest.raises(Problems) as caught:
            freeze_document(document, env)
        assert all(part.field and part.message and part.mend for part in caught.value.problems)
        return {part.field or "": part.message for part in caught.value.problems}

    return run
