"""Reconciling runs whose runner died: their cells get exactly one state, their Dagster runs an end."""

from __future__ import annotations

from dagster import (
    DagsterInstance,
    DagsterRunStatus,
    DefaultSensorStatus,
    SensorEvaluationContext,
    SkipReason,
    sensor,
)

from resources.dagster_resources import StoreResource
from resources.journal.connection import Journal
from resources.journal.leases import DeadRun, reconcile_dead_runs
from resources.journal.runs import list_events
from sr_bench_assets.tags import DAGSTER_RUN_EVENT

_LIVE = (DagsterRunStatus.STARTED, DagsterRunStatus.STARTING, DagsterRunStatus.CANCELING)


def end_dead_runs(journal: Journal, instance: DagsterInstance) -> list[DeadRun]:
    """Reconcile dead runs in the journal and mark their in-process Dagster runs as failed.

    Dagster cannot know that an in-process run was killed; it would stay STARTED for ever.
    """
    dead = reconcile_dead_runs(journal)
    for run in dead:
        for event in list_events(journal, run.run_id):
            if event.kind != DAGSTER_RUN_EVENT:
                continue
            record = instance.get_run_by_id((event.data or {})["dagster_run_id"])
            if record is not None and record.status in _LIVE:
                instance.report_run_failed(record, f"The runner of sr-bench run {run.run_id} died.")
    return dead


@sensor(
    name="dead_run_reconciliation",
    minimum_interval_seconds=30,
    default_status=DefaultSensorStatus.RUNNING,
    description="Finds runs whose process died and records what is known of each of their cells.",
)
def dead_run_reconciliation(context: SensorEvaluationContext, store: StoreResource) -> SkipReason:
    _, journal = store.open_journal()
    dead = end_dead_runs(journal, context.instance)
    return SkipReason(f"Reconciled: {', '.join(run.run_id for run in dead)}" if dead else "No dead runs.")
