"""The two asset jobs: the five stages of a partition, and the scorecard of a profile."""

from __future__ import annotations

from dagster import AssetSelection, define_asset_job

from sr_bench_assets.partitions import benchmark_profile_partitions, profile_partitions

EVALUATION_JOB = "evaluate"
SCORECARD_JOB = "score"
PREPARATION_JOB = "prepare"

STAGES = ("prepared_dataset", "frozen_plan", "target_results", "reconciled_usage", "benchmark_report")

evaluation_job = define_asset_job(
    EVALUATION_JOB,
    selection=AssetSelection.assets(*STAGES),
    partitions_def=benchmark_profile_partitions,
    description="Verify the frozen tasks and plan, call the targets, reconcile usage, report: one benchmark.",
)
scorecard_job = define_asset_job(
    SCORECARD_JOB,
    selection=AssetSelection.assets("scorecard"),
    partitions_def=profile_partitions,
    description="Aggregate the benchmarks of one run.",
)
preparation_job = define_asset_job(
    PREPARATION_JOB,
    selection=AssetSelection.assets("prepared_dataset"),
    partitions_def=benchmark_profile_partitions,
    description="Prepare a frozen dataset without calling any model.",
)
