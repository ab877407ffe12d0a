"""Scheduled holdout builds: the standard task sets, prepared before anybody waits for them."""

from __future__ import annotations

from collections.abc import Iterator

from dagster import DefaultScheduleStatus, RunRequest, ScheduleEvaluationContext, schedule

from sr_bench_assets.benchmarks.registry import benchmarks
from sr_bench_assets.jobs import preparation_job
from sr_bench_assets.partitions import partition_key


@schedule(
    job=preparation_job,
    cron_schedule="0 3 * * 1",
    execution_timezone="UTC",
    default_status=DefaultScheduleStatus.STOPPED,
    description="Each Monday, prepare the standard (holdout) set of every benchmark from its pinned source. A set "
    "that is there is verified, not made again. Off until switched on; calls no model.",
)
def holdout_build(context: ScheduleEvaluationContext) -> Iterator[RunRequest]:
    week = context.scheduled_execution_time.strftime("%G-W%V")
    for benchmark in benchmarks():
        yield RunRequest(run_key=f"{benchmark}/{week}", partition_key=partition_key(benchmark, "standard"))
