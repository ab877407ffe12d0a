"""Watching the pinned sources: a weekly look whether their bytes are still those of the first fetch."""

from __future__ import annotations

from dagster import DefaultScheduleStatus, RunRequest, ScheduleEvaluationContext, schedule

from sr_bench_assets.jobs import source_observation_job


@schedule(
    job=source_observation_job,
    cron_schedule="0 2 * * 1",
    execution_timezone="UTC",
    default_status=DefaultScheduleStatus.STOPPED,
    description="Each Monday, before the holdout builds, hash the fetched sources and ask their hubs what they state. "
    "Off until switched on; downloads nothing.",
)
def source_observation(context: ScheduleEvaluationContext) -> RunRequest:
    return RunRequest(run_key=context.scheduled_execution_time.strftime("%G-W%V"))
