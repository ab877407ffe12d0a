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
from sr_bench_assets.datasets.assets import dataset_metadata, dataset_version
from sr_bench_assets.partitions import partition_key
from sr_bench_assets.plans.assets import plan_metadata
from sr_bench_assets.plans.plan_store import newest_plan

DATA_VERSION_TAG = "dagster/data_version"
_LOOK_BACK = 100
"""Materializations of a partition that are searched for an artifact."""


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
            version = dataset_version(manifest, benchmark)
            metadata = dataset_metadata(manifest, benchmark)
            yield Artifact("prepared_dataset", benchmark, manifest.profile, version, metadata)
    for benchmark in benchmarks():
        for profile in PROFILES:
            plan = newest_plan(store, benchmark, profile)
            if plan is not None:
                metadata = plan_metadata(plan)
                yield Artifact("frozen_plan", benchmark, profile, plan.plan_sha256, metadata)


def record_artifacts(store: Store, instance: DagsterInstance) -> int:
    """Record the newest artifacts that Dagster has never seen; returns how many.

    One that it has seen is not recorded again: a run pinned to an older plan rightly made older ones the latest.
    """
    recorded = 0
    for artifact in newest_artifacts(store):
        key = partition_key(artifact.benchmark, artifact.profile)
        wanted = AssetRecordsFilter(asset_key=AssetKey(artifact.asset), asset_partitions=[key])
        seen = instance.fetch_materializations(wanted, limit=_LOOK_BACK).records
        events = [record.asset_materialization for record in seen]
        if any(
            event and (event.tags or {}).get(DATA_VERSION_TAG) == artifact.data_version for event in events
        ):
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
