"""Recovery: which cells of an ended run may be continued or retried, and the child run that does so.

The parent stays as it is. A cell may be taken over by one child only; what may have been generated without a
known end, or been billed without a known sum, is never sent again.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

from pydantic import Field

from resources.errors import Problems, SrBenchError
from resources.journal.cells import CallBrief, ResultBrief, call_briefs, result_briefs
from resources.journal.connection import Journal
from resources.journal.runs import Cell, Run, claimed_cells, create_run, get_run, list_runs
from resources.store import Store
from resources.targets import Strict
from sr_bench_assets.datasets.artifact import decode_case, read_lines
from sr_bench_assets.plans.freeze import reverified
from sr_bench_assets.plans.manifest import FrozenPlan
from sr_bench_assets.plans.plan_store import dataset_file, get_plan
from sr_bench_assets.results.scope import RunScopeCells, planned_cells

RECOVERY_SCHEMA = "sr-bench-recovery-1"
Mode = Literal["undispatched", "failed"]
Reason = Literal["claimed", "ambiguous", "completed", "failed", "undispatched", "unknown_billing"]

NOT_GENERATED = frozenset({400, 401, 402, 403, 404, 405, 406, 410, 411, 413, 414, 415, 422, 431})
"""Answers by which a server says that it did not process the request: nothing was generated or billed."""


class CellRef(Strict):
    """A case of a target."""

    case_id: str
    target_id: str


class EligibleCell(CellRef):
    """A cell that may be sent (again). `failure`: why it failed in the parent; null if never dispatched."""

    benchmark: str
    failure: str | None = None


class ExcludedCell(CellRef):
    """A cell that may not, and why."""

    benchmark: str
    reason: Reason
    child_run_id: str | None = None
    """The child that has claimed it."""


class RecoveryPlan(Strict):
    """What `recover-plan` prints, for review. Only `selected_cells` is meant to be edited."""

    recovery_schema: Literal["sr-bench-recovery-1"] = RECOVERY_SCHEMA
    run_id: str
    plan_sha256: str
    mode: Mode
    counts: dict[str, int] = Field(default_factory=dict)
    """Cells by `eligible` and by reason of exclusion; their sum is the parent's denominator."""
    selected_cells: list[CellRef] | None = None
    """The cells to recover. Null: all eligible ones, in mode undispatched; mode failed needs a list."""
    eligible: list[EligibleCell]
    excluded: list[ExcludedCell]


def recovery_plan(store: Store, journal: Journal, run_id: str, mode: Mode) -> RecoveryPlan:
    """The recovery of an ended run, computed from its journal. Writes nothing.

    Raises `NotFound`, and `SrBenchError` for a run that is still going on.
    """
    run = _ended_run(journal, run_id)
    plan = get_plan(store, run.plan_sha256)
    cells = _cells_of(store, plan, run)
    eligible, excluded = classify(
        cells,
        call_briefs(journal, run.id),
        result_briefs(journal, run.id),
        claimed_cells(journal, run.id),
        mode,
        unpriced_allowed=plan.cost_policy == "capability_only",
    )
    counts = Counter[str](cell.reason for cell in excluded)
    return RecoveryPlan(
        run_id=run.id,
        plan_sha256=run.plan_sha256,
        mode=mode,
        counts={"eligible": len(eligible), **dict(sorted(counts.items()))},
        eligible=eligible,
        excluded=excluded,
    )


def classify(
    cells: Iterable[tuple[str, Cell]],
    calls: Mapping[Cell, Sequence[CallBrief]],
    results: Mapping[Cell, ResultBrief],
    claims: Mapping[Cell, str],
    mode: Mode,
    *,
    unpriced_allowed: bool,
) -> tuple[list[EligibleCell], list[ExcludedCell]]:
    """Sort (benchmark, cell) pairs into eligible and excluded, in their order. Pure.

    `unpriced_allowed`: the plan permits unknown prices, so a call whose tokens are all known counts as billed
    knowably.
    """
    eligible: list[EligibleCell] = []
    excluded: list[ExcludedCell] = []
    for benchmark, cell in cells:
        case_id, target_id = cell
        result = results.get(cell)
        reason = _state(calls.get(cell, ()), result)
        if cell in claims:
            reason = "claimed"
        elif reason == "failed" and mode == "failed":
            if all(_billing_known(call, unpriced_allowed) for call in calls.get(cell, ())):
                failure = result.failure if result else None
                eligible.append(
                    EligibleCell(case_id=case_id, target_id=target_id, benchmark=benchmark, failure=failure)
                )
                continue
            reason = "unknown_billing"
        elif reason == "undispatched" and mode == "undispatched":
            eligible.append(EligibleCell(case_id=case_id, target_id=target_id, benchmark=benchmark))
            continue
        excluded.append(
            ExcludedCell(
                case_id=case_id,
                target_id=target_id,
                benchmark=benchmark,
                reason=reason,
                child_run_id=claims.get(cell),
            )
        )
    return eligible, excluded


def recover(
    store: Store,
    journal: Journal,
    run_id: str,
    recovery: RecoveryPlan,
    *,
    idempotency_key: str | None = None,
    acknowledge_new_attempt: bool = False,
    env: Mapping[str, str] = os.environ,
    before_claiming: Callable[[FrozenPlan], None] = lambda _plan: None,
) -> tuple[Run, bool]:
    """Create the child run that takes over the selected cells; returns it and whether it is new.

    Repeating the call with the same plan, cells and key returns the same child and claims nothing again.
    Raises `Problems` for cells that are not eligible (any more), `SrBenchError` without acknowledgement in
    mode failed or when the key stands for something else. `before_claiming` may object too, by raising.
    """
    parent = _ended_run(journal, run_id)
    scope = _selected(parent, recovery, acknowledge_new_attempt)
    plan = get_plan(store, parent.plan_sha256)
    if not _is_repeated(journal, parent, idempotency_key):
        reverified(plan, store, env)
        now = recovery_plan(store, journal, parent.id, recovery.mode)
        problems = _no_longer_eligible(scope, now)
        # The same submission may have been accepted a moment ago by another process.
        if problems and not _is_repeated(journal, parent, idempotency_key):
            raise Problems(f"{len(problems)} of {len(scope)} selected cells may not be recovered.", problems)
        before_claiming(plan)
    # In the plan's order, so that one set of cells is one scope however it was listed.
    chosen = set(scope)
    ordered = [cell for _, cell in _cells_of(store, plan, parent) if cell in chosen]
    return create_run(
        journal,
        plan_sha256=parent.plan_sha256,
        name=f"{parent.name} (recovery: {recovery.mode})",
        mode=parent.mode,
        profile=parent.profile,
        total_cells=len(ordered),
        budget_usd=plan.limits.max_cost_usd,
        idempotency_key=idempotency_key,
        parent_run_id=parent.id,
        recovery_mode=recovery.mode,
        scope=ordered,
        claims=ordered,
    )


def _state(calls: Sequence[CallBrief], result: ResultBrief | None) -> Reason:
    """A cell's one state, as far as recovery is concerned."""
    if any(call.outcome is None for call in calls) or (result is not None and result.status == "ambiguous"):
        return "ambiguous"
    if result is not None:
        return "completed" if result.status == "completed" else "failed"
    # Calls that ended without a result are no proof of how the cell ended; refused ones never generated.
    return "ambiguous" if any(call.outcome != "refused" for call in calls) else "undispatched"


def _billing_known(call: CallBrief, unpriced_allowed: bool) -> bool:
    return (
        call.outcome == "refused"
        or call.spend_known
        or call.failure == "connect_error"
        or call.http_status in NOT_GENERATED
        or (unpriced_allowed and call.usage_known)
    )


def _ended_run(journal: Journal, run_id: str) -> Run:
    run = get_run(journal, run_id)
    if not run.is_terminal:
        raise SrBenchError(
            f"Run {run.id} is {run.status}; only an ended run can be recovered.",
            code="run_active",
            field="run_id",
            mend=f"Wait for it, or stop it: sr-bench cancel {run.id}.",
        )
    if run.mode != "live":
        raise SrBenchError(
            f"Run {run.id} is a {run.mode} run; there is nothing to recover.",
            field="run_id",
            mend="Run its manifest again.",
        )
    return run


def _cells_of(store: Store, plan: FrozenPlan, run: Run) -> list[tuple[str, Cell]]:
    """(benchmark, cell) of every cell of the run, benchmark by benchmark, in the plan's order."""
    scope = RunScopeCells.parse(run.scope)
    ids: dict[str, list[str]] = {name: [] for name in plan.benchmarks}
    for line in read_lines(dataset_file(store, plan), plan.dataset.sha256):
        case = decode_case(line)
        ids[case.benchmark].append(case.id)
    return [
        (benchmark, cell)
        for benchmark, case_ids in ids.items()
        for cell in planned_cells(plan, scope, case_ids)
    ]


def _selected(parent: Run, recovery: RecoveryPlan, acknowledged: bool) -> list[Cell]:
    """The cells to recover as (case id, target id); refuses what was not decided explicitly."""
    if recovery.run_id != parent.id or recovery.plan_sha256 != parent.plan_sha256:
        raise SrBenchError(
            f"The recovery plan is for run {recovery.run_id}, not for {parent.id}.",
            field="run_id",
            mend=f"Use the plan of this run: sr-bench recover-plan {parent.id} --mode {recovery.mode}.",
        )
    if recovery.mode == "failed" and not acknowledged:
        raise SrBenchError(
            "Retrying failed cells means new attempts and new spend.",
            code="not_acknowledged",
            field="acknowledge_new_attempt",
            mend="Repeat with --acknowledge-new-attempt.",
        )
    if recovery.mode == "failed" and recovery.selected_cells is None:
        raise SrBenchError(
            "Failed cells are retried only one by one as selected.",
            code="nothing_selected",
            field="selected_cells",
            mend="Copy the reviewed cells from eligible into selected_cells (case_id and target_id of each).",
        )
    chosen: Sequence[CellRef] = (
        recovery.eligible if recovery.selected_cells is None else recovery.selected_cells
    )
    cells = [(cell.case_id, cell.target_id) for cell in chosen]
    if not cells:
        raise SrBenchError(
            "No cell is selected.",
            code="nothing_selected",
            field="selected_cells",
            mend="There is nothing to recover, or selected_cells must name cells.",
        )
    twice = [cell for cell, count in Counter(cells).items() if count > 1]
    if twice:
        raise SrBenchError(
            f"{len(twice)} cell(s) are selected twice, {twice[0][0]} of {twice[0][1]} first.",
            field="selected_cells",
            mend="List each cell once.",
        )
    return cells


def _no_longer_eligible(cells: Sequence[Cell], now: RecoveryPlan) -> list[SrBenchError]:
    allowed = {(cell.case_id, cell.target_id) for cell in now.eligible}
    reasons = {(cell.case_id, cell.target_id): cell.reason for cell in now.excluded}
    return [
        SrBenchError(
            f"{case_id} of {target_id} is not eligible "
            f"({reasons.get((case_id, target_id), 'not in this run')}).",
            code="not_eligible",
            field=f"selected_cells[{index}]",
            mend="Make a new recovery plan, or take the cell out.",
        )
        for index, (case_id, target_id) in enumerate(cells)
        if (case_id, target_id) not in allowed
    ]


def _is_repeated(journal: Journal, parent: Run, key: str | None) -> bool:
    """Whether `key` stands for a child of this run already; if for the same request, the journal says."""
    return key is not None and any(
        child.idempotency_key == key for child in list_runs(journal, parent_run_id=parent.id)
    )
