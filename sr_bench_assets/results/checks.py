"""Checks of a partition's results; a failed blocking one stops usage and report."""

from __future__ import annotations

from collections.abc import Sequence

from dagster import AssetCheckResult, AssetCheckSeverity, AssetCheckSpec

from resources.journal.runs import Run
from sr_bench_assets.plans.manifest import FrozenPlan
from sr_bench_assets.results.scope import RunScopeCells, planned_count

_ASSET = "target_results"
CHECK_SPECS = [
    AssetCheckSpec(
        "denominator_is_the_plan",
        asset=_ASSET,
        blocking=True,
        description="No cell has two results and none lies outside the plan.",
    ),
    AssetCheckSpec(
        "within_budget",
        asset=_ASSET,
        blocking=True,
        description="Known spend and kept reservations stay within the plan's max_cost_usd.",
    ),
    AssetCheckSpec(
        "every_cell_ended",
        asset=_ASSET,
        description="No planned cell was left undispatched or ambiguous (a warning: the report shows them).",
    ),
]


def check_results(
    plan: FrozenPlan, run: Run, benchmark: str, cells: Sequence[tuple[str, str, str]]
) -> list[AssetCheckResult]:
    """The results of `CHECK_SPECS`; `cells` are (case id, target id, status) of the partition's sealed results."""
    planned = planned_count(plan, RunScopeCells.parse(run.scope), benchmark, None)
    targets = {target.id for target in plan.targets}
    distinct = {(case_id, target_id) for case_id, target_id, _ in cells}
    strangers = [
        case_id
        for case_id, target_id, _ in cells
        if target_id not in targets or not case_id.startswith(f"{benchmark}/")
    ]
    ended = sum(status in ("completed", "failed") for _, _, status in cells)
    committed = run.spent_usd + run.unknown_usd
    return [
        AssetCheckResult(
            check_name="denominator_is_the_plan",
            passed=len(distinct) == len(cells) <= planned and not strangers,
            metadata={"planned": planned, "results": len(cells), "distinct": len(distinct)},
        ),
        AssetCheckResult(
            check_name="within_budget",
            # A reservation is an upper bound by the dearest price; only a reply beyond it could overrun the budget.
            passed=committed <= run.budget_usd,
            metadata={"committed_usd": str(committed), "budget_usd": str(run.budget_usd)},
        ),
        AssetCheckResult(
            check_name="every_cell_ended",
            passed=ended == planned,
            severity=AssetCheckSeverity.WARN,
            metadata={"planned": planned, "ended": ended},
        ),
    ]
