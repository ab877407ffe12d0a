"""`frozen_plan`: what will be sent, to whom, within which limits, under one hash."""

# Dagster reads the annotation of `config` as a class: no `from __future__ import annotations` here.
import os

from dagster import (
    AssetCheckResult,
    AssetCheckSpec,
    AssetExecutionContext,
    Config,
    DataVersion,
    MaterializeResult,
    MetadataValue,
    asset,
)
from pydantic import Field

from resources.dagster_resources import RunScope, StoreResource
from sr_bench_assets.partitions import benchmark_of, benchmark_profile_partitions, profile_of
from sr_bench_assets.plans.composition import compose_default
from sr_bench_assets.plans.freeze import freeze
from sr_bench_assets.plans.plan_context import pinned_plan
from sr_bench_assets.plans.plan_store import newest_plan, put_plan
from sr_bench_assets.plans.summary import plan_markdown
from sr_bench_assets.tags import PLAN_TAG


class PlanConfig(Config):
    """How a plan is found when none is pinned."""

    compose: bool = Field(
        False,
        description="Compose a fresh plan from the registered targets and the newest dataset of the partition, "
        "even where a plan exists. Unchanged inputs give the same plan and send nothing.",
    )


@asset(
    partitions_def=benchmark_profile_partitions,
    deps=["prepared_dataset"],
    code_version="1",
    group_name="evaluation",
    kinds={"json"},
    check_specs=[
        AssetCheckSpec(
            "plan_covers_partition",
            asset="frozen_plan",
            blocking=True,
            description="The plan has its own hash and plans cases of this partition.",
        )
    ],
    description="The verified manifest with every default spelled out. Runs execute only frozen plans.",
)
def frozen_plan(
    context: AssetExecutionContext, config: PlanConfig, run_scope: RunScope, store: StoreResource
) -> MaterializeResult:
    opened = store.open()
    benchmark, profile = benchmark_of(context), profile_of(context)
    plan = pinned_plan(run_scope, opened)
    if plan is None and not config.compose:
        plan = newest_plan(opened, benchmark, profile)
    if plan is None:
        plan = freeze(compose_default(opened, benchmark, profile, os.environ), opened, os.environ)
        put_plan(opened, plan)
    context.instance.add_run_tags(context.run.run_id, {PLAN_TAG: plan.plan_sha256})
    covers = benchmark in plan.benchmarks and plan.profile == profile
    return MaterializeResult(
        data_version=DataVersion(plan.plan_sha256),
        metadata={
            "plan_sha256": plan.plan_sha256,
            "name": plan.name,
            "cases": plan.case_count,
            "targets": len(plan.targets),
            "budget_usd": str(plan.limits.max_cost_usd),
            "summary": MetadataValue.md(plan_markdown(plan)),
            "file": MetadataValue.path(str(opened.plans_dir / f"{plan.plan_sha256}.json")),
        },
        check_results=[
            AssetCheckResult(
                check_name="plan_covers_partition",
                passed=covers,
                metadata={"benchmarks": ", ".join(plan.benchmarks), "profile": plan.profile},
            )
        ],
    )
