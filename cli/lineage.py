"""Telling Dagster of artifacts that a command made, so that the UI shows them with their lineage at once.

Runs materialize all their assets themselves; `dataset prepare`, `dataset combine` and `plan` work without a Dagster
run and record their artifact afterwards as an event of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from resources.store import Store

if TYPE_CHECKING:
    from sr_bench_assets.datasets.artifact import DatasetManifest
    from sr_bench_assets.plans.manifest import FrozenPlan


def record_dataset(store: Store, manifest: DatasetManifest) -> None:
    """Record `prepared_dataset` of each benchmark in the dataset."""
    for benchmark in manifest.benchmarks:
        metadata = {
            "dataset_id": manifest.id,
            "cases": manifest.counts[benchmark],
            "split": manifest.split,
            "seed": manifest.seed,
            "custom_subset": manifest.custom_subset,
            "sample_data": manifest.sample_data or "no",
            "file": manifest.path,
        }
        partition = (benchmark, manifest.profile)
        _record(store, "prepared_dataset", partition, manifest.case_sha256[benchmark], metadata)


def record_plan(store: Store, plan: FrozenPlan) -> None:
    """Record `frozen_plan` of each benchmark in the plan."""
    metadata = {
        "plan_sha256": plan.plan_sha256,
        "name": plan.name,
        "cases": plan.case_count,
        "targets": len(plan.targets),
        "budget_usd": str(plan.limits.max_cost_usd),
    }
    for benchmark in plan.benchmarks:
        _record(store, "frozen_plan", (benchmark, plan.profile), plan.plan_sha256, metadata)


def _record(
    store: Store, asset: str, partition: tuple[str, str], data_version: str, metadata: dict[str, Any]
) -> None:
    from dagster import AssetMaterialization, DagsterInstance, MultiPartitionKey

    from resources.dagster_home import prepare_dagster_home

    prepare_dagster_home(store)
    key = MultiPartitionKey({"benchmark": partition[0], "profile": partition[1]})
    DagsterInstance.get().report_runless_asset_event(
        AssetMaterialization(
            asset_key=asset,
            partition=key,
            metadata=metadata,
            tags={"dagster/data_version": data_version},
        )
    )
