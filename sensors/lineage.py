"""Showing Dagster what commands made: prepared datasets and frozen plans appear in the UI with their lineage.

`dataset prepare` and `plan` work without Dagster, which keeps them fast; runs materialize all their assets
themselves. What Dagster has not seen yet is recorded here, when the UI starts and every half minute after that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dagster import (
    AssetKey,
    AssetMaterialization,
    AssetRecordsFilter,
    DagsterInstance,
    DefaultSensorStatus,
    SensorEvaluationContext,
    SkipReason,
    sensor,
)

from resources.dagster_resources import StoreResource
from resources.store import Store
from sr_bench_assets.benchmarks.contract import PROFILES
from sr_bench_assets.benchmarks.registry import benchmarks
from sr_bench_assets.datasets.artifact import list_datasets
from sr_bench_assets.partitions import partition_key
from sr_bench_assets.plans.plan_store import newest_plan

DATA_VERSION_TAG = "dagster/data_version"


@dataclass(frozen=True)
class Artifact:
    """The newest artifact of one partition."""

    asset: str
    benchmark: str
    profile: str
    data_version: str
    metadata: dict[str, Any]


def newest_artifacts(store: Store) -> Iterator[Artifact]:
    """The newest dataset and plan of every benchmark × profile that the store has one for."""
    seen: set[tuple[str, str]] = set()
    for manifest in list_datasets(store):
        for benchmark in manifest.benchmarks:
            if (benchmark, manifest.profile) in seen:
                continue
            seen.add((benchmark, manifest.profile))
            metadata = {
                "dataset_id": manifest.id,
                "cases": manifest.counts[benchmark],
                "split": manifest.split,
                "seed": manifest.seed,
                "custom_subset": manifest.custom_subset,
                "sample_data": manifest.sample_data or "no",
                "file": manifest.path,
            }
            version = manifest.case_sha256[benchmark]
            yield Artifact("prepared_dataset", benchmark, manifest.profile, version, metadata)
    for benchmark in benchmarks():
        for profile in PROFILES:
            plan = newest_plan(store, benchmark, profile)
            if plan is not None:
                metadata = {
                    "plan_sha256": plan.plan_sha256,
                    "name": plan.name,
                    "cases": plan.case_count,
                    "targets": len(plan.targets),
                    "budget_usd": str(plan.limits.max_cost_usd),
                }
                yield Artifact("frozen_plan", benchmark, profile, plan.plan_sha256, metadata)


def record_artifacts(store: Store, instance: DagsterInstance) -> int:
    """Record the newest artifacts that Dagster does not show as the latest of their partition; returns how many."""
    recorded = 0
    for artifact in newest_artifacts(store):
        key = partition_key(artifact.benchmark, artifact.profile)
        wanted = AssetRecordsFilter(asset_key=AssetKey(artifact.asset), asset_partitions=[key])
        latest = instance.fetch_materializations(wanted, limit=1).records
        shown = latest[0].asset_materialization if latest else None
        if shown is not None and shown.tags and shown.tags.get(DATA_VERSION_TAG) == artifact.data_version:
            continue
        instance.report_runless_asset_event(
            AssetMaterialization(
                asset_key=artifact.asset,
                partition=key,
                metadata=artifact.metadata,
                tags={DATA_VERSION_TAG: artifact.data_version},
            )
        )
        recorded += 1
    return recorded


@sensor(
    name="artifact_lineage",
    minimum_interval_seconds=30,
    default_status=DefaultSensorStatus.RUNNING,
    description="Records datasets and plans that commands made since, so that they stand in the asset graph.",
)
def artifact_lineage(context: SensorEvaluationContext, store: StoreResource) -> SkipReason:
    return SkipReason(f"{record_artifacts(store.open(), context.instance)} artifacts recorded.")
