"""Which run a materialization of a partition belongs to: an earlier sealed one, a named one, or a new one."""

from __future__ import annotations

from resources.errors import Incomplete, NotFound, SrBenchError
from resources.journal.calls import dispatched_cells
from resources.journal.connection import Journal
from resources.journal.runs import Run, create_run, get_run, list_runs
from resources.journal.seals import get_seal
from resources.store import Store
from sr_bench_assets.plans.manifest import FrozenPlan
from sr_bench_assets.plans.plan_store import dataset_file
from sr_bench_assets.results.case_file import CaseFile
from sr_bench_assets.results.scope import RunScopeCells, planned_cells


def choose_run(
    store: Store,
    journal: Journal,
    plan: FrozenPlan,
    benchmark: str,
    *,
    run_id: str = "",
    new_run: bool = False,
) -> Run:
    """The run whose results of `benchmark` a materialization pinned to `plan` shall have.

    A named run wins; else the newest run of the plan whose partition is sealed (nothing is sent again); else a
    new run over this partition. Raises SrBenchError when the named run is of another plan, and Incomplete when an
    earlier run of the plan left this partition unfinished: continuing or repeating it is a person's decision.
    """
    if run_id:
        run = get_run(journal, run_id)
        if run.plan_sha256 != plan.plan_sha256:
            raise SrBenchError(
                f"Run {run.id} executes plan {run.plan_sha256}, not {plan.plan_sha256}.",
                field="run_scope.run_id",
                mend="Pin the plan of the run, or leave the run empty.",
            )
        return run
    earlier = [run for run in list_runs(journal) if _covers(run, plan, benchmark)]
    if not new_run:
        sealed = next((run for run in earlier if _is_sealed(journal, run, benchmark)), None)
        if sealed is not None:
            return sealed
        for run in earlier:
            _refuse_unfinished(journal, run, benchmark)
    scope = None
    cells = plan.case_count * len(plan.targets)
    if len(plan.benchmarks) > 1:
        case_file = CaseFile(dataset_file(store, plan), plan.dataset.sha256)
        scope = list(planned_cells(plan, RunScopeCells(), case_file.ids(benchmark)))
        case_file.close()
        cells = len(scope)
    run, _ = create_run(
        journal,
        plan_sha256=plan.plan_sha256,
        name=plan.name,
        mode=plan.mode,
        profile=plan.profile,
        total_cells=cells,
        budget_usd=plan.limits.max_cost_usd,
        # Two materializations launched at one moment find the same key and so the same run.
        idempotency_key=f"dagster/{plan.plan_sha256}/{benchmark}/{len(earlier)}",
        scope=scope,
    )
    return run


def _covers(run: Run, plan: FrozenPlan, benchmark: str) -> bool:
    return (
        run.plan_sha256 == plan.plan_sha256
        and run.parent_run_id is None
        and RunScopeCells.parse(run.scope).covers_benchmark(benchmark)
    )


def _is_sealed(journal: Journal, run: Run, benchmark: str) -> bool:
    ended = run.status in ("completed", "failed")
    return ended and get_seal(journal, run.id, benchmark, "results") is not None


def sealed_run(journal: Journal, plan: FrozenPlan, benchmark: str) -> Run:
    """The newest run of the plan with sealed results of `benchmark`, whatever became of the rest of the run."""
    for run in list_runs(journal):
        if _covers(run, plan, benchmark) and get_seal(journal, run.id, benchmark, "results") is not None:
            return run
    raise NotFound(
        f"No run of plan {plan.plan_sha256} has results of {benchmark}.",
        mend="Materialize target_results of this partition first.",
    )


def _refuse_unfinished(journal: Journal, run: Run, benchmark: str) -> None:
    if not run.is_terminal:
        raise SrBenchError(
            f"Run {run.id} of this plan is {run.status}.",
            code="run_busy",
            mend=f"Wait for it (`sr-bench show {run.id}`) or stop it (`sr-bench cancel {run.id}`).",
        )
    if dispatched_cells(journal, run.id, benchmark):
        raise Incomplete(
            f"Run {run.id} of this plan ended {run.status} with unfinished cells of {benchmark}; "
            "what was sent is not sent again by itself.",
            mend=f"Continue it with `sr-bench recover-plan {run.id} --mode undispatched`, or set new_run to "
            "evaluate the plan anew.",
        )
