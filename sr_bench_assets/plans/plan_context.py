"""Which plan a materialization works on."""

from __future__ import annotations

from dagster import AssetExecutionContext

from resources.dagster_resources import RunScope
from resources.errors import NotFound
from resources.store import Store
from sr_bench_assets.partitions import benchmark_of, profile_of
from sr_bench_assets.plans.manifest import FrozenPlan
from sr_bench_assets.plans.plan_store import get_plan, newest_plan
from sr_bench_assets.tags import DATASET_TAG, PLAN_TAG


def plan_in_run(context: AssetExecutionContext, run_scope: RunScope, store: Store) -> FrozenPlan:
    """The plan that this materialization works on: pinned, else that which `frozen_plan` chose in the same
    Dagster run, else the newest of the partition.

    Raises `NotFound` where there is none.
    """
    plan = pinned_plan(run_scope, store)
    if plan is not None:
        return plan
    tagged = _tag(context, PLAN_TAG)
    if tagged:
        return get_plan(store, tagged)
    benchmark, profile = benchmark_of(context), profile_of(context)
    newest = newest_plan(store, benchmark, profile)
    if newest is None:
        raise NotFound(
            f"There is no plan for {benchmark}, profile {profile}.",
            field="run_scope.plan_sha256",
            mend="Materialize frozen_plan of this partition first, or freeze one with `sr-bench plan`.",
        )
    return newest


def pinned_plan(run_scope: RunScope, store: Store) -> FrozenPlan | None:
    """The plan that the materialization is pinned to, verified; None when it is pinned to none."""
    return get_plan(store, run_scope.plan_sha256) if run_scope.plan_sha256 else None


def dataset_in_run(context: AssetExecutionContext) -> str | None:
    """Id of the dataset that `prepared_dataset` materialized in the same Dagster run, if it was part of it."""
    return _tag(context, DATASET_TAG)


def _tag(context: AssetExecutionContext, name: str) -> str | None:
    # Tags that an earlier step of the run added are not in `context.run`.
    record = context.instance.get_run_by_id(context.run.run_id)
    return record.tags.get(name) if record else None
