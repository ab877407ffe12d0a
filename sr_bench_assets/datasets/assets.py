"""`prepared_dataset`: the frozen tasks of one benchmark and profile."""

# Dagster reads the annotation of `config` as a class: no `from __future__ import annotations` here.
from typing import Literal

from dagster import AssetExecutionContext, Config, DataVersion, MaterializeResult, MetadataValue, asset
from pydantic import Field

from resources.dagster_resources import RunScope, StoreResource
from resources.store import Store
from sr_bench_assets.benchmarks.contract import DEFAULT_SEED
from sr_bench_assets.datasets.artifact import DatasetManifest, list_datasets, manifest_beside
from sr_bench_assets.datasets.checks import CHECK_SPECS, check_partition
from sr_bench_assets.datasets.preparation import PreparationRequest, prepare
from sr_bench_assets.datasets.tables import strata_markdown
from sr_bench_assets.partitions import benchmark_of, benchmark_profile_partitions, profile_of


class PreparationConfig(Config):
    """How the dataset is made when no plan is pinned. Fields are those of `sr-bench dataset prepare`."""

    dataset_id: str = Field("", description="Take this prepared dataset as it is.")
    prefer: Literal["stored", "source"] = Field(
        "stored",
        description="stored: the newest dataset of the partition if the store has one, else the pinned source. "
        "source: always from the pinned source (or source_path); equal content gives the equal dataset.",
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
    code_version="1",
    group_name="evaluation",
    kinds={"dataset"},
    check_specs=CHECK_SPECS,
    description="Cases selected from the pinned source, published once under their content hash. Labels never show here.",
)
def prepared_dataset(
    context: AssetExecutionContext, config: PreparationConfig, run_scope: RunScope, store: StoreResource
) -> MaterializeResult:
    opened = store.open()
    benchmark, profile = benchmark_of(context), profile_of(context)
    manifest = _pinned(run_scope, opened) or _chosen(context, config, opened, benchmark, profile)
    data_version = manifest.case_sha256.get(benchmark, manifest.sha256)
    source = manifest.sources.get(benchmark)
    return MaterializeResult(
        data_version=DataVersion(data_version),
        metadata={
            "dataset_id": manifest.id,
            "cases": manifest.counts.get(benchmark, 0),
            "split": manifest.split,
            "seed": manifest.seed,
            "custom_subset": manifest.custom_subset,
            "sample_data": manifest.sample_data or "no",
            "source": f"{source.url} @ {source.revision}" if source else "none",
            "licence": source.licence if source else "none",
            "categories": MetadataValue.md(strata_markdown(manifest, benchmark)),
            "file": MetadataValue.path(manifest.path),
        },
        check_results=check_partition(manifest, benchmark, profile),
    )


def _pinned(run_scope: RunScope, store: Store) -> DatasetManifest | None:
    plan = run_scope.plan_document(store)
    return None if plan is None else manifest_beside(plan["dataset"]["path"])


def _chosen(
    context: AssetExecutionContext, config: PreparationConfig, store: Store, benchmark: str, profile: str
) -> DatasetManifest:
    if config.dataset_id or (config.prefer == "stored" and not config.source_path):
        for manifest in list_datasets(store):
            if config.dataset_id and not manifest.id.startswith(config.dataset_id):
                continue
            if benchmark in manifest.benchmarks and manifest.profile == profile:
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
