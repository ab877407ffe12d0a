"""Preparation jobs in the journal: claimed once, visible, failed with their cause, retried on request."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from sqlalchemy import update

from resources.errors import NotFound, SrBenchError
from resources.journal.connection import Journal, open_journal
from resources.journal.schema import preparations
from resources.store import Store
from sr_bench_assets.datasets.artifact import load_manifest
from sr_bench_assets.datasets.jobs import (
    START_GRACE_S,
    create_job,
    fail_dead_jobs,
    get_job,
    list_jobs,
    retry_job,
    work_on,
)
from sr_bench_assets.datasets.request import PreparationRequest


@pytest.fixture
def journal(store: Store) -> Journal:
    return open_journal(store)


@pytest.fixture
def request_(mmlu_file: Path) -> PreparationRequest:
    return PreparationRequest(
        benchmarks=("mmlu-pro",), profile="smoke", source_path=str(mmlu_file), revision="v1"
    )


def test_a_job_is_done_once_and_names_its_dataset(
    store: Store, journal: Journal, request_: PreparationRequest
) -> None:
    job = create_job(journal, request_)
    assert (job.status, job.ended) == ("queued", False)
    done = work_on(store, journal, job.id)
    assert done.status == "completed"
    assert done.stage == "freeze"
    assert done.dataset_id is not None
    assert load_manifest(store, done.dataset_id).case_count == 14
    assert work_on(store, journal, job.id) == done
    assert [listed.id for listed in list_jobs(journal)] == [job.id]
    assert get_job(journal, job.id[:8]).request == request_
    with pytest.raises(NotFound):
        get_job(journal, "prep-absent")


def test_a_failure_stays_visible_and_can_be_retried(store: Store, journal: Journal, tmp_path: Path) -> None:
    from .conftest import mmlu_rows

    path = tmp_path / "questions.jsonl"
    request = PreparationRequest(
        benchmarks=("mmlu-pro",), profile="smoke", source_path=str(path), revision="v1"
    )
    job = work_on(store, journal, create_job(journal, request).id)
    assert job.status == "failed"
    assert job.error is not None
    assert job.error["code"] == "missing_file"
    assert job.error["exit_code"] == 3
    import json

    path.write_text("".join(json.dumps(row) + "\n" for row in mmlu_rows(700)))
    assert retry_job(journal, job.id).status == "queued"
    assert work_on(store, journal, job.id).status == "completed"
    with pytest.raises(SrBenchError, match="only a failed one"):
        retry_job(journal, job.id)


def test_a_dead_worker_is_noticed(journal: Journal, request_: PreparationRequest) -> None:
    waiting, never_started, killed = (create_job(journal, request_) for _ in range(3))
    with journal.begin() as connection:
        connection.execute(
            update(preparations)
            .where(preparations.c.id == never_started.id)
            .values(updated_at=time.time() - START_GRACE_S - 1)
        )
        connection.execute(
            update(preparations)
            .where(preparations.c.id == killed.id)
            .values(status="running", pid=2**22 + 1, pid_started=1.0, host=_host())
        )
    fail_dead_jobs(journal)
    assert get_job(journal, waiting.id).status == "queued"
    for dead in (never_started, killed):
        job = get_job(journal, dead.id)
        assert job.status == "failed"
        assert job.error is not None
        assert job.error["code"] == "interrupted"


def _host() -> str:
    from resources.journal.processes import host_name

    return host_name()
