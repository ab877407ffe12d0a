"""`frozen_plan`: what will be sent, to whom, within which limits, under one hash."""

# Dagster reads the annotation of `config` as a class: no `from __future__ import annotations` here.
import os
from typing import Any

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
from resources.store import Store
from sr_bench_assets.datasets.artifact import load_manifest
from sr_bench_assets.partitions import benchmark_of, benchmark_profile_partitions, profile_of
from sr_bench_assets.plans.composition import compose_default
from sr_bench_assets.plans.freeze import freeze
from sr_bench_assets.plans.manifest import FrozenPlan
from sr_bench_assets.plans.plan_context import dataset_in_run, pinned_plan
from sr_bench_assets.plans.plan_store import newest_plan, put_plan
from sr_bench_assets.plans.summary import plan_markdown, targets_markdown
from sr_bench_assets.tags import PLAN_TAG


class PlanConfig(Config):
    """How a plan is found when none is pinned."""

    compose: bool = Field(
        False,
        description="Compose a fresh plan from the registered targets, even where a plan exists: over the dataset "
        "materialized in the same run, else the newest of the partition. Unchanged inputs give the same plan and "
        "send nothing.",
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
    description="What will be sent, to whom and within which limits: the verified manifest with every default "
    "spelled out, under one hash.\n\n"
    "Without a pinned plan it is the newest of the partition, else one composed from the registered targets with "
    "default options. Calls no model.",
)
def frozen_plan(
    context: AssetExecutionContext, config: PlanConfig, run_scope: RunScope, store: StoreResource
) -> MaterializeResult:
    opened = store.open()
    benchmark, profile = benchmark_of(context), profile_of(context)
    plan = pinned_plan(run_scope, opened) or _newest(context, config, opened, benchmark, profile)
    if plan is None:
        dataset_id = dataset_in_run(context)
        dataset = load_manifest(opened, dataset_id) if dataset_id else None
        composed = compose_default(opened, benchmark, profile, os.environ, dataset)
        plan = freeze(composed, opened, os.environ)
        put_plan(opened, plan)
    context.instance.add_run_tags(context.run.run_id, {PLAN_TAG: plan.plan_sha256})
    covers = benchmark in plan.benchmarks and plan.profile == profile
    return MaterializeResult(
        data_version=DataVersion(plan.plan_sha256),
        metadata={
            **plan_metadata(plan),
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


def plan_metadata(plan: FrozenPlan) -> dict[str, Any]:
    """What Dagster shows of a plan."""
    return {
        "name": plan.name,
        "cells": plan.case_count * len(plan.targets),
        "cases": plan.case_count,
        "targets": MetadataValue.md(targets_markdown(plan)),
        "budget_usd": float(plan.limits.max_cost_usd),
        "summary": MetadataValue.md(plan_markdown(plan)),
        "plan_sha256": plan.plan_sha256,
    }


def _newest(
    context: AssetExecutionContext, config: PlanConfig, store: Store, benchmark: str, profile: str
) -> FrozenPlan | None:
    """The partition's newest plan, if it is wanted and over the dataset that this Dagster run materialized."""
    if config.compose:
        return None
    plan = newest_plan(store, benchmark, profile)
    return plan if plan is not None and dataset_in_run(context) in (None, plan.dataset_id) else None
