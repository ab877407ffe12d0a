"""References to registered targets: `{"ref": "<id>"}` where a manifest may have a target.

A reference is replaced by the whole registered target when the plan is frozen, so that later changes of the
registry do not change the plan. Nothing may stand beside `ref`: another profile of a target is registered
under an id of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from resources.errors import NotFound, SrBenchError
from resources.store import Store
from resources.target_registry import get_target


def resolve_references(document: Any, store: Store) -> tuple[Any, list[SrBenchError]]:
    """`document` with every reference under `targets` and `auxiliary_targets` resolved, and what went wrong.

    A reference that cannot be resolved stays where it is.
    """
    if not isinstance(document, Mapping):
        return document, []
    problems: list[SrBenchError] = []
    resolved = dict(document)
    targets = document.get("targets")
    if isinstance(targets, list):
        resolved["targets"] = [
            _resolve(item, f"targets[{i}]", store, problems) for i, item in enumerate(targets)
        ]
    auxiliary = document.get("auxiliary_targets")
    if isinstance(auxiliary, Mapping):
        resolved["auxiliary_targets"] = {
            role: _resolve(item, f"auxiliary_targets.{role}", store, problems)
            for role, item in auxiliary.items()
        }
    return resolved, problems


def is_reference(item: Any) -> bool:
    """Whether `item` stands for a registered target."""
    return isinstance(item, Mapping) and "ref" in item


def _resolve(item: Any, path: str, store: Store, problems: list[SrBenchError]) -> Any:
    if not is_reference(item):
        return item
    if len(item) > 1:
        problems.append(
            SrBenchError(
                "Nothing may stand beside ref: a reference takes the registered target whole.",
                field=path,
                mend="Remove the other members, or write the target out without ref.",
            )
        )
        return item
    if not isinstance(item["ref"], str):
        problems.append(
            SrBenchError("ref must be a registered target's id.", field=f"{path}.ref", mend="Write text.")
        )
        return item
    try:
        return get_target(store, item["ref"]).model_dump(mode="json")
    except NotFound as error:
        problems.append(
            SrBenchError(error.message, code="unknown_target", field=f"{path}.ref", mend=error.mend)
        )
        return item
