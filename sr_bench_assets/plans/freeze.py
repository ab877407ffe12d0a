"""Freezing: a manifest is verified against everything it depends on, completed and given its hash."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rfc8785 import CanonicalizationError

from resources.canonical import content_hash
from resources.documents import read_document
from resources.errors import IntegrityError, Problems, SrBenchError
from resources.store import Store
from sr_bench_assets.plans.dataset_checks import (
    DatasetFacts,
    benchmarks_of,
    case_ids_sha256,
    check_benchmarks,
    check_dataset,
    planned_benchmark,
    provenance,
    read_dataset,
)
from sr_bench_assets.plans.draft import Draft, completed, draft_of_document, draft_of_manifest
from sr_bench_assets.plans.limit_checks import check_limits
from sr_bench_assets.plans.manifest import AuxiliaryTargets, FrozenPlan, Manifest
from sr_bench_assets.plans.options import OPTIONS_FILE, OperatorOptions, operator_options
from sr_bench_assets.plans.plan_store import is_frozen, put_plan, verified_plan
from sr_bench_assets.plans.reading import read_raw, resolve_document
from sr_bench_assets.plans.target_checks import check_targets


def freeze(manifest: Manifest, store: Store, env: Mapping[str, str] = os.environ) -> FrozenPlan:
    """`manifest` as a frozen plan: dataset verified, defaults spelled out, hashed. Sends and stores nothing.

    `env` is where `api_key_env` names must be set. Raises `Problems` with all problems, each naming its field
    and mend.
    """
    return _freeze(draft_of_manifest(manifest), manifest, [], store, env)


def freeze_file(path: Path, store: Store, env: Mapping[str, str] = os.environ) -> FrozenPlan:
    """Freeze the manifest in a file; structural problems and those of its content are raised together."""
    document, problems = read_raw(path, store)
    return _freeze_document(document, problems, store, env)


def plan_from(path: Path, store: Store, env: Mapping[str, str] = os.environ) -> FrozenPlan:
    """The plan to run from a file: a frozen plan is verified (hash, dataset, environment, installed benchmarks),
    a manifest is frozen. Stores nothing.

    Raises `Problems` as `freeze` does, and `IntegrityError` when a frozen plan was changed or no longer
    describes what would run.
    """
    document = read_document(path)
    if is_frozen(document):
        return reverified(verified_plan(document, str(path)), store, env)
    return _freeze_document(*resolve_document(document, path.resolve().parent, store), store, env)


def frozen_from(path: Path, store: Store, env: Mapping[str, str] = os.environ) -> FrozenPlan:
    """`plan_from` a file, kept in the store."""
    plan = plan_from(path, store, env)
    put_plan(store, plan)
    return plan


def reverified(plan: FrozenPlan, store: Store, env: Mapping[str, str] = os.environ) -> FrozenPlan:
    """`plan`, after its preflight was repeated: dataset bytes, environment, installed benchmark versions.

    Raises `Problems` as `freeze` does, and `IntegrityError` when what is installed is not what was frozen.
    """
    members = {name: getattr(plan, name) for name in Manifest.model_fields}
    now = freeze(Manifest.model_construct(**members), store, env)
    for name in ("benchmarks", "dataset_id", "case_sha256", "auxiliary_targets", "benchmark_options"):
        if getattr(now, name) != getattr(plan, name):
            raise IntegrityError(
                f"The plan was frozen for other {name} than those that would run now.",
                code="stale_plan",
                field=name,
                mend="Freeze the manifest again with this version: sr-bench plan --manifest FILE.",
            )
    return plan


def _freeze_document(
    document: Any, problems: list[SrBenchError], store: Store, env: Mapping[str, str]
) -> FrozenPlan:
    draft, manifest, found = draft_of_document(document)
    problems = [*problems, *found]
    if draft is None:
        raise Problems("This is no manifest.", problems)
    return _freeze(draft, manifest, problems, store, env)


def _freeze(
    draft: Draft,
    manifest: Manifest | None,
    problems: list[SrBenchError],
    store: Store,
    env: Mapping[str, str],
) -> FrozenPlan:
    facts: DatasetFacts | None = None
    if draft.dataset is not None:
        facts, found = read_dataset(draft.dataset)
        problems = problems + found
    benchmarks, found = benchmarks_of(facts) if facts else ({}, [])
    problems = problems + found
    needs = {name: set[str](benchmark.needs) for name, benchmark in benchmarks.items()}
    operator = OperatorOptions()
    try:
        operator = operator_options(store)
    except Problems as error:
        problems = problems + [_in_options(problem) for problem in error.problems]
    except SrBenchError as error:
        problems = [*problems, _in_options(error)]
    draft = completed(draft, operator, needs)
    roles = set[str]() if draft.mode == "preview" else set[str]().union(*needs.values())
    content = [
        *(check_dataset(draft, facts.manifest) if facts else []),
        *check_benchmarks(draft, facts, benchmarks),
        *check_targets(draft, roles, env),
        *check_limits(draft.limits, draft.sampling, draft.unsure),
    ]
    problems = problems + [found for found in content if not _reported(found, problems)]
    if problems or manifest is None or facts is None:
        raise Problems(f"The manifest cannot be frozen: {len(problems)} problem(s).", _in_order(problems))
    members = {name: getattr(manifest, name) for name in Manifest.model_fields}
    members |= {
        "auxiliary_targets": AuxiliaryTargets(
            judge=draft.judge.target if draft.judge else None,
            simulator=draft.simulator.target if draft.simulator else None,
        ),
        "benchmark_options": {name: dict(options) for name, options in draft.benchmark_options.items()},
    }
    plan = FrozenPlan(
        **members,
        benchmarks={
            name: planned_benchmark(name, benchmark, facts) for name, benchmark in benchmarks.items()
        },
        dataset_id=facts.manifest.id,
        dataset_split=facts.manifest.split,
        dataset_provenance=provenance(facts.manifest),
        case_sha256=case_ids_sha256(facts.case_ids),
        case_count=len(facts.case_ids),
        plan_sha256="",
    )
    try:
        digest = content_hash(plan.model_dump(mode="json", exclude={"plan_sha256"}))
    except CanonicalizationError:
        problem = SrBenchError(
            "A number has no canonical form: whole numbers may not exceed 2^53 - 1.",
            field="targets",
            mend="Shorten the number in request_params or benchmark_options, or write it as text.",
        )
        raise Problems("The manifest cannot be frozen: 1 problem.", [problem]) from None
    return plan.model_copy(update={"plan_sha256": digest})


def _reported(problem: SrBenchError, reported: list[SrBenchError]) -> bool:
    """Whether a wrong member at or below the problem's field is reported: then it is an echo."""
    field = problem.field or ""
    inside = (f"{field}.", f"{field}[")
    return any(other.field == field or (other.field or "").startswith(inside) for other in reported)


def _in_order(problems: list[SrBenchError]) -> list[SrBenchError]:
    """Problems by where they stand: member by member, target by target; otherwise as they were found."""

    def place(problem: SrBenchError) -> tuple[str, int]:
        member, _, rest = (problem.field or "").partition(".")[0].partition("[")
        index = rest.rstrip("]")
        return member, int(index) if index.isdecimal() else -1

    return sorted(problems, key=place)


def _in_options(problem: SrBenchError) -> SrBenchError:
    place = f"{OPTIONS_FILE}:{problem.field}" if problem.field else OPTIONS_FILE
    return SrBenchError(problem.message, code=problem.code, field=place, mend=problem.mend)
