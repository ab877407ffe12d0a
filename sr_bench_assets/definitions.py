"""Assembles the code location: assets, jobs, sensors and resources; nothing else."""

from __future__ import annotations

from dagster import Definitions, in_process_executor

from resources.dagster_resources import RunScope, StoreResource
from sr_bench_assets.datasets.assets import prepared_dataset
from sr_bench_assets.datasets.source_asset import pinned_bytes_are_unchanged, task_source
from sr_bench_assets.jobs import (
    evaluation_job,
    preparation_job,
    scorecard_job,
    source_job,
    source_observation_job,
)
from sr_bench_assets.plans.assets import frozen_plan
from sr_bench_assets.reports.assets import benchmark_report, scorecard
from sr_bench_assets.results.assets import target_results
from sr_bench_assets.usage.assets import reconciled_usage

defs = Definitions(
    assets=[
        task_source,
        prepared_dataset,
        frozen_plan,
        target_results,
        reconciled_usage,
        benchmark_report,
        scorecard,
    ],
    asset_checks=[pinned_bytes_are_unchanged],
    jobs=[evaluation_job, scorecard_job, preparation_job, source_job, source_observation_job],
    # The stages of a partition follow one another: a process for each would only cost seconds of imports.
    executor=in_process_executor,
    resources={"store": StoreResource(path=""), "run_scope": RunScope.configure_at_launch()},
)
