"""Frozen plans in the store (`plans/<plan_sha256>.json`): written once, verified on every read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import orjson
from pydantic import ValidationError
from rfc8785 import CanonicalizationError

from resources.canonical import canonical_bytes, content_hash
from resources.documents import parse_document, read_document
from resources.errors import IntegrityError, NotFound, SrBenchError
from resources.plan_files import newest_plan_file
from resources.store import Store, write_once
from sr_bench_assets.plans.manifest import FrozenPlan

MIN_PREFIX = 6


def plan_document(plan: FrozenPlan) -> dict[str, Any]:
    """The frozen manifest as commands print it and as the store keeps it."""
    return plan.model_dump(mode="json")


def is_frozen(document: Any) -> bool:
    """Whether `document` claims to be a frozen plan (a manifest has no such member)."""
    return isinstance(document, dict) and "plan_sha256" in document


def put_plan(store: Store, plan: FrozenPlan) -> Path:
    """Store `plan`; returns its path. Storing it again changes no byte but makes it the newest."""
    path = _path(store, plan.plan_sha256)
    data = canonical_bytes(plan_document(plan))
    # The stored bytes must be readable as the very plan: a hash that does not fit may never enter the store.
    verified_plan(orjson.loads(data), "the plan")
    if path.exists():
        if path.read_bytes() != data:
            raise _changed(str(path))
        os.utime(path)
        return path
    write_once(path, data)
    return path


def get_plan(store: Store, plan_sha256: str) -> FrozenPlan:
    """The stored plan of that hash (a unique prefix of at least 6 digits will do).

    Raises `NotFound`, and `IntegrityError` when the stored bytes were changed.
    """
    path = _path(store, _full_hash(store, plan_sha256))
    plan = verified_plan(parse_document(path.read_bytes(), str(path)), str(path))
    if plan.plan_sha256 != path.stem:
        raise _changed(str(path))
    return plan


def load_plan(path: Path) -> FrozenPlan:
    """The frozen plan in a file. Raises `NotFound`, `SrBenchError` for a manifest that is not frozen, and
    `IntegrityError` for a plan that was changed after freezing."""
    document = read_document(path)
    if not is_frozen(document):
        raise SrBenchError(
            f"{path} is no frozen plan: it has no plan_sha256.",
            code="not_frozen",
            field="plan_sha256",
            mend=f"Freeze it: sr-bench plan --manifest {path} --output frozen.json.",
        )
    return verified_plan(document, str(path))


def verified_plan(document: Any, name: str) -> FrozenPlan:
    """`document` as plan, its hash recomputed over the document itself; `name` stands for it in errors."""
    body = {key: value for key, value in document.items() if key != "plan_sha256"}
    try:
        digest = content_hash(body)
    except CanonicalizationError:
        raise _changed(name) from None
    if digest != document["plan_sha256"]:
        raise _changed(name)
    try:
        return FrozenPlan.model_validate(document)
    except ValidationError as error:
        fields = ", ".join(".".join(map(str, part["loc"])) for part in error.errors(include_input=False)[:5])
        raise IntegrityError(
            f"{name} was frozen by another version: this one does not understand {fields}.",
            code="stale_plan",
            mend="Freeze its manifest again with this version.",
        ) from None


def newest_plan(store: Store, benchmark: str, profile: str) -> FrozenPlan | None:
    """The plan frozen last (or again last) of those with this benchmark and profile; None when there is none.

    Of other plans only profile and benchmarks are looked at; the one found is verified.
    """
    path = newest_plan_file(store, benchmark, profile)
    return None if path is None else get_plan(store, path.stem)


def dataset_file(store: Store, plan: FrozenPlan) -> Path:
    """Where the plan's `cases.jsonl` is now: at its frozen path, else in this store under the dataset's id (a
    store may have been moved). Whoever reads it verifies its bytes by `plan.dataset.sha256`."""
    frozen = Path(plan.dataset.path)
    moved = store.datasets_dir / plan.dataset_id / frozen.name
    return moved if not frozen.exists() and moved.exists() else frozen


def _path(store: Store, plan_sha256: str) -> Path:
    return store.plans_dir / f"{plan_sha256}.json"


def _full_hash(store: Store, prefix: str) -> str:
    missing = NotFound(
        f"The store holds no plan {prefix}.",
        field="plan_sha256",
        mend="Freeze it with `sr-bench plan`, or check --store.",
    )
    if len(prefix) == 64 and _path(store, prefix).is_file():
        return prefix
    if len(prefix) < MIN_PREFIX or not all(char in "0123456789abcdef" for char in prefix):
        raise missing
    found = [path.stem for path in store.plans_dir.glob(f"{prefix}*.json")]
    if len(found) > 1:
        raise SrBenchError(
            f"Several plans begin with {prefix}.", field="plan_sha256", mend="Give more digits."
        )
    if not found:
        raise missing
    return found[0]


def _changed(name: str) -> IntegrityError:
    return IntegrityError(
        f"{name} was changed after it was frozen: its content does not have its plan_sha256.",
        code="changed_plan",
        field="plan_sha256",
        mend="Frozen plans are never edited: change the manifest and run `sr-bench plan` again.",
    )
