"""`benchmark-options.json` in the store: what the operator provides once for all plans.

Members (all optional): `auxiliary_targets` {judge, simulator} and `benchmark_options` {benchmark id: {…}} are
used where a manifest says nothing itself; `limits`, `sampling` and `cost_policy` are the defaults of plans
that are composed rather than written. Judge and simulator may be references (`{"ref": "<registered id>"}`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from resources.documents import read_document
from resources.errors import NotFound, Problems
from resources.store import Store
from resources.targets import Strict
from resources.validation import validate
from sr_bench_assets.plans.manifest import AuxiliaryTargets, Limits, Sampling
from sr_bench_assets.plans.references import resolve_references

OPTIONS_FILE = "benchmark-options.json"


class OperatorOptions(Strict):
    """The content of `benchmark-options.json`."""

    auxiliary_targets: AuxiliaryTargets = Field(default_factory=AuxiliaryTargets)
    benchmark_options: dict[str, dict[str, Any]] = Field(default_factory=dict)
    limits: Limits = Field(default_factory=Limits)
    sampling: Sampling = Field(default_factory=Sampling)
    cost_policy: Literal["require_priced", "capability_only"] | None = None


def operator_options(store: Store) -> OperatorOptions:
    """The store's options; all defaults where there is no such file. Raises `Problems` when it is wrong."""
    path = Path(store.root) / OPTIONS_FILE
    try:
        document = read_document(path)
    except NotFound:
        return OperatorOptions()
    document, problems = resolve_references(document, store)
    options, found = validate(OperatorOptions, document)
    problems += found
    if options is None or problems:
        raise Problems(f"{path} has {len(problems)} problem(s).", problems)
    return options
