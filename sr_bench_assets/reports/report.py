"""The report of one run, or of one partition of it: a JSON document that is the same bytes for the same
facts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

from resources.journal.connection import Journal
from resources.store import Store
from resources.targets import Target
from sr_bench_assets.plans.manifest import FrozenPlan
from sr_bench_assets.reports.facts import CallFact, CellFact
from sr_bench_assets.reports.figures import CLOCK_DIGITS, figures
from sr_bench_assets.reports.limitations import limitations
from sr_bench_assets.reports.provenance import provenance
from sr_bench_assets.reports.run_facts import RunFacts, load_run_facts
from sr_bench_assets.reports.statistics import Stratum, renormalised, weighted_accuracy
from sr_bench_assets.results.scope import planned_count

REPORT_SCHEMA = "sr-bench-report-1"


def build_report(store: Store, journal: Journal, run_id: str, benchmark: str | None = None) -> dict[str, Any]:
    """The report of a run (unique prefix of its id suffices), or of its partition `benchmark`.

    Raises NotFound for an unknown run or a benchmark that the run does not cover. A partition's report holds
    nothing of the rest of the run, so it does not change while other partitions work on.
    """
    return assemble(load_run_facts(store, journal, run_id, benchmark))


def assemble(facts: RunFacts) -> dict[str, Any]:
    """The report document from loaded facts; pure."""
    run, plan = facts.run, facts.plan
    cells = _grouped(facts.cells, lambda cell: (cell.benchmark, cell.target_id))
    calls = _grouped(facts.calls, lambda call: (call.benchmark, call.target_id))
    rows = [
        _benchmark_row(facts, name, target, cells[name, target.id], calls[name, target.id])
        for name in facts.benchmarks
        for target in plan.targets
        if planned_count(plan, facts.scope, name, target.id)
    ]
    targets = [
        _target_row(facts, target, [row for row in rows if row["target_id"] == target.id])
        for target in plan.targets
    ]
    lab = any(call.lab for call in facts.calls)
    ended = f"{run.status} ({run.reason})" if run.reason else run.status
    all_ended = all(target["complete"] for target in targets)
    complete = all_ended and (facts.partition is not None or run.status == "completed")
    return {
        "schema": REPORT_SCHEMA,
        "run_id": run.id,
        "plan_sha256": plan.plan_sha256,
        "lab": lab,
        "complete": complete,
        "name": plan.name,
        "mode": plan.mode,
        "profile": plan.profile,
        "split": plan.dataset_split,
        **_optional("sample_data", plan.dataset_provenance.get("sample_data")),
        **({"partition": facts.partition} if facts.partition else _run_state(run.status, run.reason)),
        **_optional("parent_run_id", run.parent_run_id),
        **_optional("recovery_mode", run.recovery_mode),
        "targets": targets,
        "benchmarks": rows,
        **_wall_time(facts),
        "limitations": limitations(
            plan,
            lab=lab,
            complete=complete,
            ended=ended if facts.partition is None and run.status != "completed" else None,
            scoped=facts.scope.cells is not None,
            full_score=all(target["score"] is not None for target in targets),
            reconciled=facts.accounting is not None,
            targets=targets,
        ),
        "provenance": provenance(plan, facts.benchmarks, sealed=facts.sealed, accounting=facts.accounting),
    }


@dataclass(frozen=True)
class Aggregate:
    """Quality of one target over its benchmarks."""

    macro: Fraction
    label: str
    full_score: Fraction | None
    reason: str | None
    """Why there is no full score."""


def strata_of(plan: FrozenPlan, rows: Iterable[Mapping[str, Any]]) -> tuple[Stratum, ...]:
    """One target's benchmark rows as strata, the plan's weights scaled to sum 1."""
    kept = list(rows)
    weights = renormalised(
        {row["benchmark"]: Fraction(plan.benchmarks[row["benchmark"]].weight) for row in kept}
    )
    return tuple(
        Stratum(row["benchmark"], weights[row["benchmark"]], row["planned"], row["correct"]) for row in kept
    )


def aggregate(facts: RunFacts, rows: list[dict[str, Any]]) -> Aggregate:
    """Weighted accuracy of one target, and the full score where all nine benchmarks are complete."""
    plan = facts.plan
    macro = weighted_accuracy(strata_of(plan, rows))
    covered = sum((Fraction(plan.benchmarks[row["benchmark"]].weight) for row in rows), Fraction(0))
    if covered != 1:
        reason = (
            f"a full score needs all nine benchmarks; these carry {float(100 * covered):g} % of its weight"
        )
    elif plan.dataset_provenance.get("custom_subset"):
        reason = "the dataset is a custom subset"
    elif facts.scope.cells is not None:
        reason = "the run covers a part of the plan"
    elif not all(row["complete"] for row in rows):
        reason = "not every planned cell ended"
    else:
        return Aggregate(macro, "all nine benchmarks", macro, None)
    count = len(rows)
    label = (
        "all nine benchmarks" if covered == 1 else f"subset of {count} benchmark{'s' if count > 1 else ''}"
    )
    return Aggregate(macro, label, None, reason)


def _benchmark_row(
    facts: RunFacts, name: str, target: Target, cells: list[CellFact], calls: list[CallFact]
) -> dict[str, Any]:
    planned = planned_count(facts.plan, facts.scope, name, target.id)
    return {
        "benchmark": name,
        "target_id": target.id,
        "kind": target.kind,
        **figures(planned, cells, calls, mode=facts.plan.mode),
    }


def _target_row(facts: RunFacts, target: Target, rows: list[dict[str, Any]]) -> dict[str, Any]:
    if len(rows) == 1:
        own = {key: value for key, value in rows[0].items() if key not in ("benchmark", "target_id", "kind")}
    else:
        own = figures(
            sum(row["planned"] for row in rows),
            [cell for cell in facts.cells if cell.target_id == target.id],
            [call for call in facts.calls if call.target_id == target.id],
            mode=facts.plan.mode,
        )
    return {"id": target.id, "kind": target.kind, **_with_aggregate(own, _aggregate_fields(facts, rows))}


def _aggregate_fields(facts: RunFacts, rows: list[dict[str, Any]]) -> dict[str, Any]:
    if facts.plan.mode != "live" or not rows:
        why = "a route preview generates no answers" if rows else "no planned cases"
        return {
            "macro_accuracy": None,
            "macro_accuracy_reason": why,
            "macro_label": "none",
            "score": None,
            "score_reason": why,
        }
    found = aggregate(facts, rows)
    fields: dict[str, Any] = {
        "macro_accuracy": float(found.macro),
        "macro_accuracy_fraction": str(found.macro),
        "macro_label": found.label,
        "score": None if found.full_score is None else float(found.full_score),
    }
    return fields if found.reason is None else {**fields, "score_reason": found.reason}


def _with_aggregate(own: dict[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
    """The aggregate stands right before the tokens, after the plain accuracy."""
    at = list(own).index("tokens")
    items = list(own.items())
    return {**dict(items[:at]), **fields, **dict(items[at:])}


def _run_state(status: str, reason: str | None) -> dict[str, Any]:
    return {"status": status, **_optional("status_reason", reason)}


def _wall_time(facts: RunFacts) -> dict[str, Any]:
    run = facts.run
    if facts.partition is not None:
        ends = [call.finished_at for call in facts.calls if call.finished_at is not None]
        if ends:
            return {
                "wall_time_s": round(
                    max(ends) - min(call.dispatched_at for call in facts.calls), CLOCK_DIGITS
                )
            }
        return {"wall_time_s": None, "wall_time_s_reason": "no call of this partition has a known end"}
    if run.started_at is None or run.finished_at is None:
        return {"wall_time_s": None, "wall_time_s_reason": f"the run is {run.status}"}
    return {"wall_time_s": round(run.finished_at - run.started_at, CLOCK_DIGITS)}


def _optional(name: str, value: Any) -> dict[str, Any]:
    return {} if value is None else {name: value}


Row = TypeVar("Row")


def _grouped(rows: Iterable[Row], key: Callable[[Row], Hashable]) -> defaultdict[Any, list[Row]]:
    groups: defaultdict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return groups
