"""`task_source`: the verified bytes that a benchmark's tasks are read from, and the watch over them."""

# Dagster reads the annotations of asset functions as classes: no `from __future__ import annotations` here.
from typing import Any

from dagster import (
    AssetCheckExecutionContext,
    AssetCheckResult,
    AssetExecutionContext,
    AssetKey,
    AssetObservation,
    DataVersion,
    MaterializeResult,
    MetadataValue,
    asset,
    asset_check,
)

from resources.dagster_resources import StoreResource
from sr_bench_assets.benchmarks.registry import benchmarks, get_benchmark
from sr_bench_assets.datasets.artifact import SourceRecord
from sr_bench_assets.datasets.observation import SourceObservation, observe_source
from sr_bench_assets.datasets.requirements import installed_needs
from sr_bench_assets.datasets.sources import fetch_source, source_record
from sr_bench_assets.datasets.tables import observations_markdown, source_files_markdown
from sr_bench_assets.partitions import benchmark_partitions
from sr_bench_assets.tags import DATA_VERSION_TAG


@asset(
    partitions_def=benchmark_partitions,
    code_version="1",
    group_name="evaluation",
    kinds={"dataset"},
    description="The benchmark's pinned source: downloaded once into the store, verified, and hashed file by file. "
    "Only a preparation without a stored dataset reads it; runs work from prepared datasets and download nothing.",
)
def task_source(context: AssetExecutionContext, store: StoreResource) -> MaterializeResult:
    benchmark = get_benchmark(context.partition_key)
    installed_needs(benchmark, None)
    fetched = fetch_source(
        store.open(), benchmark, None, lambda what, done, total: context.log.debug(f"{what}: {done}/{total}")
    )
    record = source_record(benchmark, fetched)
    return MaterializeResult(data_version=DataVersion(record.files_sha256), metadata=source_metadata(record))


@asset_check(
    asset=task_source,
    description="Every fetched source has the bytes of its first fetch, and its hub still states them for the pinned "
    "revision. Downloads nothing. What is seen of each benchmark is recorded as an observation of its partition.",
)
def pinned_bytes_are_unchanged(context: AssetCheckExecutionContext, store: StoreResource) -> AssetCheckResult:
    opened = store.open()
    seen: dict[str, SourceObservation] = {}
    for benchmark_id, benchmark in benchmarks().items():
        observation = observe_source(opened, benchmark)
        if observation is None:
            continue
        seen[benchmark_id] = observation
        context.op_execution_context.log_event(
            AssetObservation(
                AssetKey("task_source"),
                partition=benchmark_id,
                description="; ".join(observation.differences) or "as first fetched",
                metadata=observation_metadata(observation),
                tags={DATA_VERSION_TAG: observation.observed_version},
            )
        )
    changed = [name for name, observation in seen.items() if observation.differences]
    return AssetCheckResult(
        passed=not changed,
        metadata={
            "changed": ", ".join(changed) or "none",
            "sources": MetadataValue.md(observations_markdown(seen)),
        },
    )


def source_metadata(record: SourceRecord) -> dict[str, Any]:
    """What Dagster shows of a source."""
    return {
        "url": record.url,
        "revision": record.revision,
        "files": len(record.files),
        "bytes": sum(file.size for file in record.files),
        "files_sha256": record.files_sha256,
        "file_list": MetadataValue.md(source_files_markdown(record)),
        "licence": record.licence,
        "access": record.access_note,
        "readers": f"{record.adapter_version}, {record.normalizer_version}",
    }


def observation_metadata(seen: SourceObservation) -> dict[str, Any]:
    """What Dagster shows of one look at a source."""
    return {
        "revision": seen.revision,
        "first_fetched": seen.fetched_version,
        "observed": seen.observed_version,
        "differences": "; ".join(seen.differences) or "none",
        "hub": seen.upstream,
    }
