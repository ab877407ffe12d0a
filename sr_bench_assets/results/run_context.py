"""Which run a materialization after `target_results` reads: pinned, or tagged by it in the same Dagster run."""

from __future__ import annotations

from dagster import AssetExecutionContext

from resources.dagster_resources import RunScope
from resources.journal.connection import Journal
from resources.journal.runs import Run, get_run
from resources.store import Store
from sr_bench_assets.partitions import benchmark_of
from sr_bench_assets.plans.plan_context import plan_in_run
from sr_bench_assets.results.run_choice import sealed_run
from sr_bench_assets.tags import RUN_TAG


def run_in_partition(
    context: AssetExecutionContext, run_scope: RunScope, store: Store, journal: Journal
) -> Run:
    """The run of this partition: pinned, else that which `target_results` worked on in the same Dagster run, else
    the newest one whose results of the partition are sealed.

    Raises `NotFound` where there is none.
    """
    if run_scope.run_id:
        return get_run(journal, run_scope.run_id)
    record = context.instance.get_run_by_id(context.run.run_id)
    tagged = record.tags.get(RUN_TAG) if record else None
    if tagged:
        return get_run(journal, tagged)
    plan = plan_in_run(context, run_scope, store)
    return sealed_run(journal, plan, benchmark_of(context))
