"""The asset jobs: the five stages of a partition, the scorecard of a profile, and preparing what they start from."""

from __future__ import annotations

from dagster import AssetCheckKey, AssetKey, AssetSelection, define_asset_job

EVALUATION_JOB = "evaluate"
SCORECARD_JOB = "score"
PREPARATION_JOB = "prepare"
SOURCE_JOB = "fetch_source"
SOURCE_OBSERVATION_JOB = "observe_sources"

STAGES = ("prepared_dataset", "frozen_plan", "target_results", "reconciled_usage", "benchmark_report")

evaluation_job = define_asset_job(
    EVALUATION_JOB,
    selection=AssetSelection.assets(*STAGES),
    description="Verify the frozen tasks and plan, call the targets, reconcile usage, report: one benchmark.",
)
scorecard_job = define_asset_job(
    SCORECARD_JOB,
    selection=AssetSelection.assets("scorecard"),
    description="Aggregate the benchmarks of one run.",
)
preparation_job = define_asset_job(
    PREPARATION_JOB,
    selection=AssetSelection.assets("prepared_dataset"),
    description="Prepare a frozen dataset without calling any model.",
)
source_job = define_asset_job(
    SOURCE_JOB,
    selection=AssetSelection.assets("task_source"),
    description="Download and verify a benchmark's pinned source, without preparing anything of it.",
)
source_observation_job = define_asset_job(
    SOURCE_OBSERVATION_JOB,
    selection=AssetSelection.checks(AssetCheckKey(AssetKey("task_source"), "pinned_bytes_are_unchanged")),
    description="Look whether the fetched sources still have their bytes, here and at their hub. Downloads nothing.",
)
