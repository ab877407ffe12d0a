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
from sr_bench_assets.datasets.source_asset import source_metadata
from sr_bench_assets.datasets.sources import kept_record
from sr_bench_assets.partitions import partition_key
from sr_bench_assets.plans.assets import plan_metadata
from sr_bench_assets.plans.plan_store import newest_plan
from sr_bench_assets.tags import DATA_VERSION_TAG

_LOOK_BACK = 100
"""Materializations of a partition that are searched for an artifact."""


@dataclass(frozen=True)
class Artifact:
    """The newest artifact of one partition."""

    asset: str
    benchmark: str
    profile: str | None
    """None: the asset is partitioned by benchmark alone."""
    data_version: str
    metadata: dict[str, Any]

    @property
    def partition(self) -> str:
        return self.benchmark if self.profile is None else partition_key(self.benchmark, self.profile)


def newest_artifacts(store: Store) -> Iterator[Artifact]:
    """The source of every benchmark (fetched, else that of its newest dataset), and the newest dataset and plan of
    every benchmark × profile, that the store has."""
    manifests = list_datasets(store)
    for benchmark_id, benchmark in benchmarks().items():
        imported = (found.sources[benchmark_id] for found in manifests if benchmark_id in found.sources)
        record = kept_record(store, benchmark) or next(imported, None)
        if record is not None:
            yield Artifact("task_source", benchmark_id, None, record.files_sha256, source_metadata(record))
    seen: set[tuple[str, str]] = set()
    for manifest in manifests:
        for name in manifest.benchmarks:
            if (name, manifest.profile) in seen:
                continue
            seen.add((name, manifest.profile))
            version = dataset_version(manifest, name)
            metadata = dataset_metadata(manifest, name)
            yield Artifact("prepared_dataset", name, manifest.profile, version, metadata)
    for benchmark_id in benchmarks():
        for profile in PROFILES:
            plan = newest_plan(store, benchmark_id, profile)
            if plan is not None:
                metadata = plan_metadata(plan)
                yield Artifact("frozen_plan", benchmark_id, profile, plan.plan_sha256, metadata)


def record_artifacts(store: Store, instance: DagsterInstance) -> int:
    """Record the newest artifacts that Dagster has never seen; returns how many.

    One that it has seen is not recorded again: a run pinned to an older plan rightly made older ones the latest.
    """
    recorded = 0
    for artifact in newest_artifacts(store):
        wanted = AssetRecordsFilter(asset_key=AssetKey(artifact.asset), asset_partitions=[artifact.partition])
        seen = instance.fetch_materializations(wanted, limit=_LOOK_BACK).records
        events = [record.asset_materialization for record in seen]
        if any(
            event and (event.tags or {}).get(DATA_VERSION_TAG) == artifact.data_version for event in events
        ):
            continue
        instance.report_runless_asset_event(
            AssetMaterialization(
                asset_key=artifact.asset,
                partition=artifact.partition,
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
    description="Records sources, datasets and plans that commands made since, so that they stand in the asset graph.",
)
def artifact_lineage(context: SensorEvaluationContext, store: StoreResource) -> SkipReason:
    return SkipReason(f"{record_artifacts(store.open(), context.instance)} artifacts recorded.")
