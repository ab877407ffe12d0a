"""The operator's registered targets: one JSON file in the store, changed under a lock and replaced whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from filelock import FileLock, Timeout

from resources.documents import parse_document
from resources.errors import IntegrityError, NotFound, Problems, SrBenchError, Unavailable
from resources.store import Store, replace_file
from resources.target_rules import target_problems
from resources.targets import Target
from resources.validation import validate

FILE_NAME = "targets.json"
LOCK_TIMEOUT_S = 10


@dataclass(frozen=True)
class Registration:
    """What a registration did, by target id."""

    registered: tuple[str, ...]
    updated: tuple[str, ...]
    unchanged: tuple[str, ...]


def parse_targets(document: Any) -> list[Target]:
    """A list of targets, one target, or `{"targets": [...]}` as models.

    Raises `Problems` with every problem of every target: unknown fields, missing or wrong values, equal ids.
    """
    root = ""
    if isinstance(document, Mapping) and set(document) == {"targets"}:
        document, root = document["targets"], "targets"
    raw: list[Any] = document if isinstance(document, list) else [document]
    problems: list[SrBenchError] = []
    targets: list[Target] = []
    first_of: dict[str, str] = {}
    for index, item in enumerate(raw):
        path = f"{root}[{index}]" if isinstance(document, list) else root
        target, found = validate(Target, item, path)
        problems += found
        if target is None:
            continue
        problems += target_problems(target, path)
        if target.id in first_of:
            problems.append(
                SrBenchError(
                    f"The id {target.id!r} is used twice (first at {first_of[target.id]}).",
                    code="duplicate_id",
                    field=f"{path}.id",
                    mend="Give each target an id of its own.",
                )
            )
        first_of.setdefault(target.id, path)
        targets.append(target)
    if not raw:
        problems.append(SrBenchError("The list holds no target.", mend="Write at least one target."))
    if problems:
        raise Problems(f"No target was registered: {len(problems)} problem(s).", problems)
    return targets


def list_targets(store: Store) -> list[Target]:
    """The registered targets, by id. Raises `IntegrityError` when the store's file is damaged."""
    path = _path(store)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    try:
        document = parse_document(data, FILE_NAME)
        return sorted(parse_targets(document), key=lambda target: target.id) if document else []
    except SrBenchError as error:
        raise IntegrityError(
            f"The store's {FILE_NAME} is damaged: {error.message}",
            mend="Mend the file, or remove it and register the targets again.",
        ) from error


def get_target(store: Store, target_id: str) -> Target:
    """The registered target of that id. Raises `NotFound` naming the registered ids."""
    targets = {target.id: target for target in list_targets(store)}
    if target_id not in targets:
        raise _unknown(target_id, targets)
    return targets[target_id]


def register_targets(store: Store, targets: Sequence[Target]) -> Registration:
    """Add `targets` to the registry; one with a known id replaces that. Frozen plans stay as they are."""
    with _locked(store):
        known = {target.id: target for target in list_targets(store)}
        new = tuple(target.id for target in targets if target.id not in known)
        unchanged = tuple(target.id for target in targets if known.get(target.id) == target)
        updated = tuple(
            target.id for target in targets if target.id not in new and target.id not in unchanged
        )
        if new or updated:
            _replace(_path(store), [*{**known, **{target.id: target for target in targets}}.values()])
    return Registration(new, updated, unchanged)


def remove_target(store: Store, target_id: str) -> None:
    """Take a target out of the registry. Raises `NotFound`. Plans and runs are not touched."""
    with _locked(store):
        known = {target.id: target for target in list_targets(store)}
        if target_id not in known:
            raise _unknown(target_id, known)
        del known[target_id]
        _replace(_path(store), [*known.values()])


def _path(store: Store) -> Path:
    return Path(store.root) / FILE_NAME


def _locked(store: Store) -> Any:
    lock = FileLock(Path(store.root) / f".{FILE_NAME}.lock", timeout=LOCK_TIMEOUT_S, mode=0o600)
    try:
        return lock.acquire()
    except Timeout:
        raise Unavailable(
            "Another process is changing the registered targets.", mend="Try again when it has ended."
        ) from None


def _replace(path: Path, targets: Sequence[Target]) -> None:
    document = [target.model_dump(mode="json") for target in sorted(targets, key=lambda target: target.id)]
    data = orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    replace_file(path, data)


def _unknown(target_id: str, known: Mapping[str, Target]) -> NotFound:
    return NotFound(
        f"No target {target_id!r} is registered.",
        mend=f"Registered: {', '.join(sorted(known))}."
        if known
        else "Register one: sr-bench target register --file F.",
    )
