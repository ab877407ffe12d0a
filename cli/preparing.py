"""Starting a preparation in a process of its own, and following it until it ends."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import Any

from cli.output import plain_terminal, say, stderr_console
from resources.errors import NotFound, SrBenchError, Unavailable
from resources.journal.connection import Journal
from resources.store import Store
from sr_bench_assets.datasets.artifact import DatasetManifest, load_manifest
from sr_bench_assets.datasets.jobs import Job, create_job, fail_dead_jobs, get_job
from sr_bench_assets.datasets.request import PreparationRequest

POLL_S = 0.1
DEAD_CHECK_EVERY_S = 2.0


def start(store: Store, journal: Journal, request: PreparationRequest) -> Job:
    """Record the job and start its worker."""
    job = create_job(journal, request)
    spawn_worker(store, job.id)
    return job


def spawn_worker(store: Store, job_id: str) -> int:
    """Start the worker of a queued job in a session of its own, so that it outlives the command; returns its pid."""
    folder = store.root / "preparations"
    folder.mkdir(mode=0o700, exist_ok=True)
    log = os.open(folder / f"{job_id}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "cli.main", "--store", str(store.root), "dataset", "work", job_id],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    finally:
        os.close(log)
    return process.pid


def follow(store: Store, journal: Journal, job: Job) -> DatasetManifest:
    """Wait for the job and return its dataset; Ctrl-C ends the wait only. Raises the job's error if it failed."""
    show = PlainProgress() if plain_terminal() else _Live()
    checked = time.monotonic()
    try:
        while not job.ended:
            time.sleep(POLL_S)
            if time.monotonic() - checked > DEAD_CHECK_EVERY_S:
                fail_dead_jobs(journal)
                checked = time.monotonic()
            job = get_job(journal, job.id)
            if job.progress is not None and not job.ended:
                show(job.stage or "", job.progress["what"], job.progress["done"], job.progress["total"])
    except KeyboardInterrupt:
        say(f"\nThe preparation goes on: `sr-bench dataset preparations {job.id}` shows it.")
        raise
    finally:
        show.close()
    if job.error is not None:
        raise _raised(job)
    if job.dataset_id is None:
        raise SrBenchError(f"The preparation {job.id} ended without a dataset.", code="internal")
    return load_manifest(store, job.dataset_id)


def _raised(job: Job) -> SrBenchError:
    error: dict[str, Any] = job.error or {}
    kind = {3: NotFound, 4: Unavailable}.get(error.get("exit_code", 2), SrBenchError)
    mend = f"{(error.get('mend') or 'Mend the cause').rstrip('.')}."
    retry = f" Then `sr-bench dataset preparations {job.id} --retry` continues it."
    if error.get("code") == "interrupted":
        retry = ""
    return kind(error["message"], code=error["code"], field=error.get("field"), mend=mend + retry)


class PlainProgress:
    """One line on stderr when a stage begins, and at most every five seconds within it."""

    def __init__(self) -> None:
        self._last = ("", "")
        self._said_at = 0.0

    def __call__(self, stage: str, what: str, done: int, total: int | None) -> None:
        now = time.monotonic()
        if self._last == (stage, what) and now - self._said_at < 5:
            return
        self._last, self._said_at = (stage, what), now
        say(line(stage, what, done, total))

    def close(self) -> None:
        """Nothing to tidy up."""


class _Live:
    """A status line that is overwritten in place."""

    def __init__(self) -> None:
        self._status = stderr_console().status("queued")
        self._status.start()

    def __call__(self, stage: str, what: str, done: int, total: int | None) -> None:
        self._status.update(line(stage, what, done, total))

    def close(self) -> None:
        self._status.stop()


def line(stage: str, what: str, done: int, total: int | None) -> str:
    """One line of progress, sizes of downloads in MB."""
    if stage == "download" and total is not None and total > 100_000:
        return f"{stage} {what}: {done / 1e6:.1f} of {total / 1e6:.1f} MB"
    if total:
        return f"{stage} {what}: {done} of {total}"
    return f"{stage} {what}"
