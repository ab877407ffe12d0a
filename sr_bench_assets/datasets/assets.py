"""`prepared_dataset`: the frozen tasks of one benchmark and profile."""

# Dagster reads the annotation of `config` as a class: no `from __future__ import annotations` here.
from pathlib import Path
from typing import Any, Literal

from dagster import (
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
from sr_bench_assets.benchmarks.contract import DEFAULT_SEED
from sr_bench_assets.datasets.artifact import (
    DatasetManifest,
    list_datasets,
    load_manifest,
    manifest_beside,
)
from sr_bench_assets.datasets.checks import CHECK_SPECS, check_partition
from sr_bench_assets.datasets.preparation import PreparationRequest, prepare
from sr_bench_assets.datasets.tables import source_markdown, strata_markdown
from sr_bench_assets.partitions import (
    benchmark_of,
    benchmark_profile_partitions,
    profile_of,
)
from sr_bench_assets.tags import DATASET_TAG


class PreparationConfig(Config):
    """Which dataset it is when no plan is pinned. Fields are those of `sr-bench dataset prepare`."""

    dataset_id: str = Field("", description="Take this prepared dataset (the beginning of its id will do).")
    prefer: Literal["stored", "newest", "source"] = Field(
        "stored",
        description="stored: that of the partition's newest plan, else the newest of the partition, else from the "
        "pinned source. newest: the newest of the partition, whatever the plan. source: from the pinned source (or "
        "source_path); equal content gives the equal dataset.",
    )
    seed: int = Field(DEFAULT_SEED, description="Seed of the selection rule.")
    limit: int = Field(
        0, description="Take only this many cases: a labelled custom subset. 0: the profile's count."
    )
    source_path: str = Field(
        "", description="Import this file or folder instead of downloading; needs revision."
    )
    revision: str = Field("", description="A label of the imported version.")
    sample_data: str = Field("", description="Label of imported data that are not the benchmark itself.")


@asset(
    partitions_def=benchmark_profile_partitions,
    # Runs work from prepared datasets: they need no source, and download none.
    deps=["task_source"],
    code_version="1",
    group_name="evaluation",
    kinds={"dataset"},
    check_specs=CHECK_SPECS,
    description="The questions: selected from the benchmark's pinned source by a seeded rule and published once, "
    "under their content hash.\n\n"
    "Without a pinned plan it is the dataset of the partition's newest plan, else the newest prepared one, else it "
    "is prepared from the source now. Calls no model. Reference answers stay in the store and never show here.",
)
def prepared_dataset(
    context: AssetExecutionContext, config: PreparationConfig, run_scope: RunScope, store: StoreResource
) -> MaterializeResult:
    opened = store.open()
    benchmark, profile = benchmark_of(context), profile_of(context)
    manifest = _chosen(context, config, run_scope, opened, benchmark, profile)
    context.instance.add_run_tags(context.run.run_id, {DATASET_TAG: manifest.id})
    return MaterializeResult(
        data_version=DataVersion(dataset_version(manifest, benchmark)),
        metadata=dataset_metadata(manifest, benchmark),
        check_results=check_partition(opened, manifest, benchmark, profile),
    )


def dataset_version(manifest: DatasetManifest, benchmark: str) -> str:
    """The hash of the benchmark's lines in the dataset: that of the partition, whatever else the file holds."""
    return manifest.case_sha256.get(benchmark, manifest.sha256)


def dataset_metadata(manifest: DatasetManifest, benchmark: str) -> dict[str, Any]:
    """What Dagster shows of one benchmark in a dataset."""
    return {
        "cases": manifest.counts.get(benchmark, 0),
        "kind_of_data": "sample data"
        if manifest.sample_data
        else "custom subset"
        if manifest.custom_subset
        else f"the benchmark's {manifest.profile} set",
        **({"sample_data": manifest.sample_data} if manifest.sample_data else {}),
        "categories": MetadataValue.md(strata_markdown(manifest, benchmark)),
        "source": MetadataValue.md(source_markdown(manifest, benchmark)),
        "split": manifest.split,
        "seed": manifest.seed,
        "dataset_id": manifest.id,
        "file": MetadataValue.path(manifest.path),
    }


def _chosen(
    context: AssetExecutionContext,
    config: PreparationConfig,
    run_scope: RunScope,
    store: Store,
    benchmark: str,
    profile: str,
) -> DatasetManifest:
    pinned = run_scope.plan_document(store)
    if pinned is not None:
        return _planned(store, pinned)
    if config.dataset_id:
        return load_manifest(store, config.dataset_id)
    if config.prefer == "stored" and not config.source_path:
        newest = run_scope.partition_plan_document(store, benchmark, profile)
        if newest is not None:
            return _planned(store, newest)
    if config.prefer != "source" and not config.source_path:
        for manifest in list_datasets(store):
            # A combined dataset would put the other benchmarks into a plan composed over it.
            if manifest.benchmarks == (benchmark,) and manifest.profile == profile:
                return manifest
    request = PreparationRequest(
        benchmarks=(benchmark,),
        profile=profile,  # pyright: ignore[reportArgumentType]  # partition keys are exactly the profiles
        seed=config.seed,
        limit=config.limit or None,
        source_path=config.source_path or None,
        revision=config.revision or None,
        sample_data=config.sample_data or None,
    )
    return prepare(
        store, request, lambda stage, what, done, total: context.log.debug(f"{stage} {what} {done}/{total}")
    )


def _planned(store: Store, plan: dict[str, Any]) -> DatasetManifest:
    """The dataset of a plan: where the plan says, else in this store under its id (stores may be moved)."""
    path = Path(plan["dataset"]["path"])
    return manifest_beside(path) if path.exists() else load_manifest(store, plan["dataset_id"])
