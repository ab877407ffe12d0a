"""Which runs may be compared: same cases, sampling, graders, limits and prices. A mismatch is named and
refused."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from resources.errors import Incomplete, Problems, SrBenchError
from resources.targets import Target
from sr_bench_assets.plans.manifest import FrozenPlan
from sr_bench_assets.reports.run_facts import RunFacts

Mismatch = tuple[str, Any, Any]
"""Path of the field, the baseline's value, the candidate's value."""


def require_complete(facts: RunFacts) -> None:
    """Raise Incomplete unless the run is live, covers its whole plan and every planned cell ended."""
    run = facts.run
    if facts.plan.mode != "live":
        raise SrBenchError(
            f"Run {run.id} is a {facts.plan.mode} run and has no answers to compare.",
            code="not_live",
            field="mode",
            mend="Compare live runs; `replay` estimates a preview.",
        )
    if run.status != "completed" or facts.scope.cells is not None:
        what = f"ended {run.status}" if facts.scope.cells is None else "covers a part of its plan"
        raise Incomplete(
            f"Run {run.id} {what}; only completed evaluations are compared.",
            code="incomplete_run",
            field="status",
            mend=f"`sr-bench report {run.id}` shows what is missing; run the plan again to completion.",
        )


def require_comparable(baseline: RunFacts, candidate: RunFacts) -> None:
    """Raise an error that names every field in which two runs differ and must not."""
    found = list(mismatches(baseline.plan, candidate.plan))
    found += _same("benchmarks in scope", list(baseline.benchmarks), list(candidate.benchmarks))
    found += _same("lab", baseline.lab, candidate.lab)
    if not found:
        return
    problems = [
        SrBenchError(
            f"{field} differs: {_shown(ours)} in {baseline.run.id}, {_shown(theirs)} in {candidate.run.id}.",
            code="mismatch",
            field=field,
            mend="Freeze and run the candidate's plan with the baseline's value.",
        )
        for field, ours, theirs in found
    ]
    if len(problems) == 1:
        raise problems[0]
    error = Problems(
        f"Runs {baseline.run.id} and {candidate.run.id} cannot be compared: they differ in "
        f"{', '.join(str(problem.field) for problem in problems)}.",
        problems,
    )
    error.code, error.field, error.mend = "mismatch", problems[0].field, problems[0].mend
    raise error


def mismatches(ours: FrozenPlan, theirs: FrozenPlan) -> Iterator[Mismatch]:
    """Every field that must be equal and is not, in the order of the plan."""
    for name in ("version", "mode", "profile", "dataset_split", "seed"):
        yield from _same(name, getattr(ours, name), getattr(theirs, name))
    yield from _same("benchmarks", sorted(ours.benchmarks), sorted(theirs.benchmarks))
    for name in (key for key in ours.benchmarks if key in theirs.benchmarks):
        left, right = (plan.benchmarks[name].model_dump(mode="json") for plan in (ours, theirs))
        yield from _same_members(f"benchmarks.{name}", left, right)
    for part in ("sampling", "limits"):
        left, right = (getattr(plan, part).model_dump(mode="json") for plan in (ours, theirs))
        yield from _same_members(part, left, right)
    yield from _same_members("benchmark_options", ours.benchmark_options, theirs.benchmark_options)
    for role in ("judge", "simulator"):
        left, right = (_auxiliary(getattr(plan.auxiliary_targets, role)) for plan in (ours, theirs))
        yield from _same_members(f"auxiliary_targets.{role}", left, right)
    left, right = _prices(ours), _prices(theirs)
    for model in sorted(set(left) & set(right)):
        yield from _same(f"prices.{model}", left[model], right[model])


def _same(field: str, ours: Any, theirs: Any) -> Iterator[Mismatch]:
    if ours != theirs:
        yield field, ours, theirs


def _same_members(field: str, ours: dict[str, Any], theirs: dict[str, Any]) -> Iterator[Mismatch]:
    for key in sorted(set(ours) | set(theirs)):
        yield from _same(f"{field}.{key}", ours.get(key), theirs.get(key))


def _auxiliary(target: Target | None) -> dict[str, Any]:
    """What makes a judge or simulator the same: not its address or credential, which may move."""
    if target is None:
        return {}
    return target.model_dump(
        mode="json", include={"kind", "model", "expected_response_model", "request_params"}
    )


def _prices(plan: FrozenPlan) -> dict[str, list[dict[str, str]]]:
    """Every price of each model in the plan. Two providers may serve one model at two rates."""
    found: defaultdict[str, list[dict[str, str]]] = defaultdict(list)
    targets = [*plan.targets, plan.auxiliary_targets.judge, plan.auxiliary_targets.simulator]
    for target in targets:
        for model, price in ((target.prices or {}) if target else {}).items():
            # Decimals compare by value only when written alike: 0.5 and 0.50 are one price.
            rates = {bucket: format(rate.normalize(), "f") for bucket, rate in price}
            if rates not in found[model]:
                found[model].append(rates)
    return {model: sorted(prices, key=lambda p: sorted(p.items())) for model, prices in found.items()}


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"
