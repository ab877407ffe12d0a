"""Preparations as jobs of the store: any client sees them, a closed client does not end them."""

from __future__ import annotations

import json
import secrets
import time
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, insert, select, update

from resources.errors import NotFound, SrBenchError
from resources.journal.connection import Journal
from resources.journal.processes import process_alive, this_process
from resources.journal.schema import preparations
from resources.store import Store
from sr_bench_assets.datasets.preparation import prepare
from sr_bench_assets.datasets.request import PreparationRequest

PROGRESS_EVERY_S = 0.5
START_GRACE_S = 60.0
"""How long a job may stay queued before it is taken for one whose worker never started."""
SILENCE_S = 1800.0


@dataclass(frozen=True)
class Job:
    """One preparation as the journal knows it."""

    id: str
    request: PreparationRequest
    status: str
    """queued | running | completed | failed"""
    stage: str | None
    progress: dict[str, Any] | None
    """{what, done, total} of the present stage."""
    error: dict[str, Any] | None
    dataset_id: str | None
    created_at: float
    updated_at: float
    pid: int | None = None
    pid_started: float | None = None
    host: str | None = None

    @property
    def ended(self) -> bool:
        return self.status in ("completed", "failed")

    def as_dict(self) -> dict[str, Any]:
        """The document that commands print."""
        return {
            "id": self.id,
            "status": self.status,
            "stage": self.stage,
            "progress": self.progress,
            "error": self.error,
            "dataset_id": self.dataset_id,
            "request": self.request.model_dump(mode="json"),
            "created_at": self.created_at,
            "updated_at": self.updated_at,
        }


def create_job(journal: Journal, request: PreparationRequest) -> Job:
    """Record a queued preparation."""
    now = time.time()
    job_id = f"prep-{secrets.token_hex(6)}"
    with journal.begin() as connection:
        connection.execute(
            insert(preparations).values(
                id=job_id,
                request=request.model_dump_json(),
                status="queued",
                created_at=now,
                updated_at=now,
            )
        )
    return get_job(journal, job_id)


def get_job(journal: Journal, job_id: str) -> Job:
    """The job with this id, or the one whose id begins so; raises NotFound."""
    query = select(preparations).where(preparations.c.id.startswith(job_id, autoescape=True)).limit(2)
    with journal.connect() as connection:
        rows = connection.execute(query).all()
    if len(rows) != 1:
        raise NotFound(
            f"The store has no preparation {job_id}."
            if not rows
            else f"Several preparations begin with {job_id}.",
            field="preparation",
            mend="`sr-bench dataset preparations` lists them.",
        )
    return _job(rows[0])


def list_jobs(journal: Journal) -> list[Job]:
    """All preparations, newest first."""
    query = select(preparations).order_by(preparations.c.created_at.desc(), preparations.c.id)
    with journal.connect() as connection:
        return [_job(row) for row in connection.execute(query)]


def fail_dead_jobs(journal: Journal) -> None:
    """Mark as failed what no living process works on any more. What it had verified is kept and reused."""
    now = time.time()
    for job in list_jobs(journal):
        if job.ended:
            continue
        if job.status == "queued":
            dead = now - job.updated_at > START_GRACE_S
        else:
            dead = not _worker_alive(job)
        if dead:
            error = SrBenchError(
                "The process that prepared this ended before it was done.",
                code="interrupted",
                mend=f"`sr-bench dataset preparations {job.id} --retry` continues it; verified files are reused.",
            )
            _end(journal, job.id, job.status, "failed", error=error)


def retry_job(journal: Journal, job_id: str) -> Job:
    """Queue a failed job again (same id, same request); raises SrBenchError for one that has not failed."""
    job = get_job(journal, job_id)
    with journal.begin() as connection:
        done = connection.execute(
            update(preparations)
            .where(preparations.c.id == job.id, preparations.c.status == "failed")
            .values(status="queued", stage=None, progress=None, error=None, pid=None, updated_at=time.time())
        )
    if done.rowcount != 1:
        raise SrBenchError(
            f"The preparation {job.id} is {job.status}; only a failed one can be retried.",
            field="--retry",
            mend="Start a new preparation with `sr-bench dataset prepare`.",
        )
    return get_job(journal, job.id)


def work_on(store: Store, journal: Journal, job_id: str) -> Job:
    """Do a queued job in this process. Of two workers only one gets it; the other returns the job as it is."""
    job = get_job(journal, job_id)
    if not _claim(journal, job.id):
        return get_job(journal, job.id)
    try:
        manifest = prepare(store, job.request, _Reporter(journal, job.id))
    except SrBenchError as error:
        _end(journal, job.id, "running", "failed", error=error)
    except BaseException as error:
        unexpected = SrBenchError(
            f"The preparation failed unexpectedly: {type(error).__name__}: {error}",
            code="internal",
            mend="Run `sr-bench --debug dataset prepare --local` with the same options to see where.",
        )
        _end(journal, job.id, "running", "failed", error=unexpected)
        raise
    else:
        _end(journal, job.id, "running", "completed", dataset_id=manifest.id)
    return get_job(journal, job.id)


class _Reporter:
    """Writes progress to the journal, at most every half second within one stage."""

    def __init__(self, journal: Journal, job_id: str) -> None:
        self._journal = journal
        self._job_id = job_id
        self._last = (None, None)
        self._written_at = 0.0

    def __call__(self, stage: str, what: str, done: int, total: int | None) -> None:
        now = time.monotonic()
        if self._last == (stage, what) and done != total and now - self._written_at < PROGRESS_EVERY_S:
            return
        self._last, self._written_at = (stage, what), now
        with self._journal.begin() as connection:
            connection.execute(
                update(preparations)
                .where(preparations.c.id == self._job_id)
                .values(
                    stage=stage,
                    progress=json.dumps({"what": what, "done": done, "total": total}),
                    updated_at=time.time(),
                )
            )


def _claim(journal: Journal, job_id: str) -> bool:
    me = this_process()
    with journal.begin() as connection:
        done = connection.execute(
            update(preparations)
            .where(preparations.c.id == job_id, preparations.c.status == "queued")
            .values(
                status="running",
                pid=me.pid,
                pid_started=me.started,
                host=me.host,
                updated_at=time.time(),
            )
        )
    return done.rowcount == 1


def _end(
    journal: Journal,
    job_id: str,
    was: str,
    status: str,
    *,
    error: SrBenchError | None = None,
    dataset_id: str | None = None,
) -> None:
    document = None if error is None else json.dumps({**error.as_dict(), "exit_code": error.exit_code})
    with journal.begin() as connection:
        connection.execute(
            update(preparations)
            .where(preparations.c.id == job_id, preparations.c.status == was)
            .values(status=status, error=document, dataset_id=dataset_id, updated_at=time.time())
        )


def _worker_alive(job: Job) -> bool:
    if job.pid is None or job.pid_started is None or job.host is None:
        return False
    alive = process_alive(job.pid, job.pid_started, job.host)
    # A worker on another host can't be seen; it reports progress, so a long silence is its end.
    return time.time() - job.updated_at < SILENCE_S if alive is None else alive


def _job(row: Row[Any]) -> Job:
    return Job(
        id=row.id,
        request=PreparationRequest.model_validate_json(row.request),
        status=row.status,
        stage=row.stage,
        progress=None if row.progress is None else json.loads(row.progress),
        error=None if row.error is None else json.loads(row.error),
        dataset_id=row.dataset_id,
        created_at=row.created_at,
        updated_at=row.updated_at,
        pid=row.pid,
        pid_started=row.pid_started,
        host=row.host,
    )
