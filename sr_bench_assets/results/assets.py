"""`target_results`: every planned cell of a partition, called, graded and sealed."""

# Dagster reads the annotation of `config` as a class: no `from __future__ import annotations` here.
import os
from collections.abc import Callable
from typing import Any

from dagster import (
    AssetExecutionContext,
    Config,
    DagsterRunStatus,
    DataVersion,
    MaterializeResult,
    MetadataValue,
    TableColumn,
    TableSchema,
    asset,
)
from pydantic import Field

from resources.canonical import content_hash
from resources.dagster_resources import RunScope, StoreResource
from resources.journal.connection import Journal
from resources.journal.runs import Run, get_run
from resources.journal.seals import get_seal
from resources.store import Store
from sr_bench_assets.partitions import benchmark_of, benchmark_profile_partitions
from sr_bench_assets.plans.manifest import FrozenPlan
from sr_bench_assets.plans.plan_context import plan_in_run
from sr_bench_assets.results.checks import CHECK_SPECS, check_results
from sr_bench_assets.results.execution import ACTIVE, RunExecution
from sr_bench_assets.results.facts import arrow_schema, load_results
from sr_bench_assets.results.run_choice import choose_run
from sr_bench_assets.results.tables import results_markdown
from sr_bench_assets.tags import RUN_TAG


class ResultsConfig(Config):
    """Whether to evaluate anew."""

    new_run: bool = Field(
        False,
        description="Start a new run of the same plan: all its calls are sent again, as a new evaluation with "
        "its own spend. Otherwise a finished run of the plan is taken as it is and nothing is sent.",
    )


@asset(
    partitions_def=benchmark_profile_partitions,
    deps=["frozen_plan"],
    code_version="1",
    group_name="evaluation",
    kinds={"parquet"},
    check_specs=CHECK_SPECS,
    tags={"sr_bench/calls_models": ""},
    description="Every planned cell (case × target): called through the write-ahead journal, graded, and sealed with "
    "the raw evidence.\n\n"
    "**This stage spends money**, at most the plan's `max_cost_usd`. A partition that is sealed for its plan is taken "
    "as it is and nothing is sent; set `new_run` to evaluate the plan anew. Terminating the Dagster run stops the "
    "calls. The same run stands in `sr-bench runs`.",
)
def target_results(
    context: AssetExecutionContext, config: ResultsConfig, run_scope: RunScope, store: StoreResource
) -> MaterializeResult:
    opened, journal = store.open_journal()
    benchmark = benchmark_of(context)
    plan = plan_in_run(context, run_scope, opened)
    run = choose_run(opened, journal, plan, benchmark, run_id=run_scope.run_id, new_run=config.new_run)
    context.instance.add_run_tags(context.run.run_id, {RUN_TAG: run.id})
    if get_seal(journal, run.id, benchmark, "results") is None:
        _execute(context, opened, journal, plan, run, benchmark)
    run = get_run(journal, run.id)
    artifacts = _artifacts(journal, run.id, benchmark)
    results = load_results(opened, journal, run.id, benchmark)
    cells = list(results.select("case_id", "target_id", "status").iter_rows())
    return MaterializeResult(
        data_version=DataVersion(content_hash(artifacts)),
        metadata={
            "results": MetadataValue.md(results_markdown(results)),
            "run_id": run.id,
            "run_status": run.status,
            "known_spend_of_run_usd": float(run.spent_usd),
            "dagster/row_count": len(cells),
            "dagster/column_schema": _columns(),
            "plan_sha256": plan.plan_sha256,
            **{f"{kind}_sha256": sha256 for kind, sha256 in artifacts.items()},
        },
        check_results=check_results(plan, run, benchmark, cells),
    )


def _execute(
    context: AssetExecutionContext, store: Store, journal: Journal, plan: FrozenPlan, run: Run, benchmark: str
) -> None:
    """Wait for the partition's cells: in the run's own dispatcher, or in one of this partition alone."""
    running = ACTIVE.get(run.id)
    if running is not None:
        running.wait(benchmark)
        return
    execution = RunExecution(store, journal, plan, run.id, [benchmark], os.environ)
    execution.should_stop = _cancelled(context)
    execution.start()
    try:
        execution.wait(benchmark)
    except BaseException:
        # Terminated in the UI, or a failure of this process: `wait` has stopped the run in the first case.
        execution.stop("the Dagster run was interrupted")
        raise
    finally:
        execution.close()


def _cancelled(context: AssetExecutionContext) -> Callable[[], str | None]:
    instance, run_id = context.instance, context.run.run_id

    def reason() -> str | None:
        record: Any = instance.get_run_by_id(run_id)
        stopping = (DagsterRunStatus.CANCELING, DagsterRunStatus.CANCELED, DagsterRunStatus.FAILURE)
        if record is None:
            return "its Dagster run was deleted"
        return "cancelled in the Dagster UI" if record.status in stopping else None

    return reason


def _artifacts(journal: Journal, run_id: str, benchmark: str) -> dict[str, str]:
    """Hashes of what was sealed for the partition, by kind."""
    seals = {kind: get_seal(journal, run_id, benchmark, kind) for kind in ("results", "calls", "evidence")}
    return {kind: seal.sha256 for kind, seal in seals.items() if seal is not None}


def _columns() -> TableSchema:
    """The columns of the sealed results."""
    fields = [TableColumn(field.name, str(field.type)) for field in arrow_schema("results")]
    return TableSchema(columns=fields)
