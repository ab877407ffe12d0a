"""In-process Dagster runs of the asset job, one partition after the other, pinned to one plan and run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from dagster import DagsterInstance, DagsterRunStatus
from sqlalchemy.exc import DatabaseError

from resources.dagster_home import prepare_dagster_home
from resources.dagster_speed import HistoryConnections
from resources.errors import Unavailable
from resources.journal.connection import Journal
from resources.journal.runs import add_event
from resources.store import Store
from sr_bench_assets.definitions import defs
from sr_bench_assets.jobs import EVALUATION_JOB, SCORECARD_JOB
from sr_bench_assets.partitions import partition_key
from sr_bench_assets.plans.manifest import FrozenPlan
from sr_bench_assets.results.conclusion import TOLD_TO_END, StopKind
from sr_bench_assets.tags import DAGSTER_RUN_EVENT, PLAN_TAG, RUN_TAG


class PartitionRuns:
    """Materializes the partitions of one run of one plan on the store's own Dagster instance."""

    def __init__(self, store: Store, journal: Journal, plan: FrozenPlan, run_id: str) -> None:
        self._home = store.dagster_home
        with self._told_apart():
            self._history = HistoryConnections(prepare_dagster_home(store))
            self._instance = DagsterInstance.get()
        self._journal = journal
        self._plan = plan
        self._run_id = run_id
        self._current: str | None = None

    def materialize(self, benchmark: str) -> tuple[StopKind, str] | None:
        """Materialize the five stages of one benchmark's partition; what ended it when not all steps succeeded."""
        return self._execute(EVALUATION_JOB, partition_key(benchmark, self._plan.profile), benchmark)

    def scorecard(self) -> None:
        """Materialize the profile's scorecard from this run."""
        self._execute(SCORECARD_JOB, self._plan.profile, "scorecard")

    def cancelled_in_dagster(self) -> str | None:
        """A reason to stop when somebody cancelled the current Dagster run in the UI, else None."""
        if self._current is None:
            return None
        record = self._instance.get_run_by_id(self._current)
        if record is not None and record.status in (DagsterRunStatus.CANCELING, DagsterRunStatus.CANCELED):
            return "cancelled in the Dagster UI"
        return None

    def _execute(self, job_name: str, key: str, label: str) -> tuple[StopKind, str] | None:
        dagster_run_id = str(uuid4())
        self._current = dagster_run_id
        add_event(
            self._journal,
            self._run_id,
            DAGSTER_RUN_EVENT,
            f"{label}: Dagster run {dagster_run_id}",
            {"dagster_run_id": dagster_run_id},
        )
        scope = {"plan_sha256": self._plan.plan_sha256, "run_id": self._run_id}
        config: dict[str, Any] = {
            "resources": {"run_scope": {"config": scope}},
            # Dagster's events stand in its history; the runner's log needs only what went wrong.
            "loggers": {"console": {"config": {"log_level": "ERROR"}}},
        }
        with self._told_apart():
            return self._executed(job_name, key, dagster_run_id, config)

    @contextmanager
    def _told_apart(self) -> Iterator[None]:
        """Dagster's own databases are not the journal, and what is broken in them costs no result."""
        try:
            yield
        except DatabaseError as error:
            cause = str(error.orig).strip().splitlines()[0] if error.orig else type(error).__name__
            raise Unavailable(
                f"Dagster's history in {self._home} cannot be used: {cause}",
                code="dagster_unavailable",
                field="store",
                mend=f"move {self._home} away: it is made anew; runs, results and evidence are not in it",
            ) from error

    def _executed(
        self, job_name: str, key: str, dagster_run_id: str, config: dict[str, Any]
    ) -> tuple[StopKind, str] | None:
        try:
            result = defs.resolve_job_def(job_name).execute_in_process(
                partition_key=key,
                instance=self._instance,
                run_config=config,
                run_id=dagster_run_id,
                tags={PLAN_TAG: self._plan.plan_sha256, RUN_TAG: self._run_id},
                raise_on_error=False,
            )
            if result.success:
                return None
            # Dagster calls a run cancelled that a signal interrupted.
            record = self._instance.get_run_by_id(dagster_run_id)
            if record is not None and record.status == DagsterRunStatus.CANCELED:
                return "interrupted", TOLD_TO_END
            steps = ", ".join(event.step_key or "" for event in result.all_events if event.is_step_failure)
            return "failed", f"its Dagster run {dagster_run_id} failed{f' at {steps}' if steps else ''}"
        finally:
            self._current = None
