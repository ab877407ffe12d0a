"""What must be on disk before what, and what happens when the database goes away in between."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Connection, create_engine, event, text

from resources.errors import SrBenchError, Unavailable
from resources.journal.calls import CallEnd, list_calls
from resources.journal.connection import Journal
from resources.journal.results import list_results
from resources.journal.runs import Run, get_run
from resources.journal.writer import Granted, JournalWriter
from resources.store import Store

from .conftest import NewRun
from .examples import a_dispatch, a_result, an_end


def pico(run: Run) -> list[int]:
    return [int(amount.scaleb(12)) for amount in (run.reserved_usd, run.spent_usd, run.unknown_usd)]


def test_every_commit_reaches_the_disk(journal: Journal) -> None:
    if journal.dialect == "sqlite":
        with journal.begin() as connection:
            assert connection.execute(text("PRAGMA synchronous")).scalar() == 2  # FULL
            assert connection.execute(text("PRAGMA journal_mode")).scalar() == "wal"
    else:
        with journal.begin() as connection:
            assert connection.execute(text("SHOW synchronous_commit")).scalar() == "on"


async def test_evidence_is_synced_before_the_commit_that_points_to_it(
    store: Store, journal: Journal, new_run: NewRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = new_run()
    happened: list[str] = []
    real = os.fdatasync

    def synced(handle: int) -> None:
        real(handle)
        happened.append(f"synced {Path(os.readlink(f'/proc/self/fd/{handle}')).stat().st_size}")

    monkeypatch.setattr("os.fdatasync", synced)

    @event.listens_for(journal.engine, "commit")
    def _committed(connection: Connection) -> None:
        happened.append("commit")

    writer = JournalWriter(journal, run.id, store.evidence_dir(run.id))
    dispatch = a_dispatch()
    await writer.dispatch(dispatch)
    happened.append("granted")
    await writer.finish(an_end(dispatch, evidence=b"12345"), a_result(dispatch))
    happened.append("ended")
    writer.close()
    assert happened == ["commit", "granted", "synced 5", "commit", "ended"]


class Forgetful(Journal):
    """A journal whose acknowledgements get lost: the commit succeeds and an error is told, every other time."""

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        with super().begin() as connection:
            yield connection
        if next(_turns) % 2 == 0:
            raise Unavailable("the connection was lost")


_turns = iter(range(10**9))


async def test_a_lost_acknowledgement_neither_sends_nor_counts_twice(
    store: Store, journal: Journal, new_run: NewRun
) -> None:
    run = new_run(total_cells=30)
    writer = JournalWriter(Forgetful(journal.engine), run.id, store.evidence_dir(run.id))

    async def cell(number: int) -> None:
        dispatch = a_dispatch(number)
        assert isinstance(await writer.dispatch(dispatch), Granted)
        await writer.finish(an_end(dispatch), a_result(dispatch))

    await asyncio.gather(*(cell(number) for number in range(10)))
    for number in range(10, 14):
        await cell(number)
    writer.close()
    assert len(list_calls(journal, run.id)) == 14
    assert [result.seq for result in list_results(journal, run.id)] == list(range(1, 15))
    assert pico(get_run(journal, run.id)) == [0, 14 * 40, 0]


@pytest.mark.parametrize("store", ["postgresql"], indirect=True)
@pytest.mark.postgres
async def test_connections_that_the_server_ends_cost_nothing_but_time(
    store: Store, journal: Journal, new_run: NewRun
) -> None:
    run = new_run(total_cells=300)
    writer = JournalWriter(journal, run.id, store.evidence_dir(run.id))
    over = threading.Event()
    ended: list[int] = []

    def end_connections() -> None:
        other = create_engine(journal.engine.url)
        others = "FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()"
        while not over.wait(0.03):
            with other.connect() as connection:
                killed = connection.execute(text(f"SELECT pg_terminate_backend(pid) {others}"))
                ended.append(len(killed.all()))
        other.dispose()

    saboteur = threading.Thread(target=end_connections)
    saboteur.start()
    slots = asyncio.Semaphore(8)

    async def cell(number: int) -> None:
        async with slots:
            dispatch = a_dispatch(number)
            assert isinstance(await writer.dispatch(dispatch), Granted)
            await writer.finish(an_end(dispatch), a_result(dispatch))

    try:
        await asyncio.gather(*(cell(number) for number in range(300)))
    finally:
        over.set()
        saboteur.join()
        writer.close()
    assert sum(ended) > 0
    assert pico(get_run(journal, run.id)) == [0, 300 * 40, 0]
    assert [result.seq for result in list_results(journal, run.id)] == list(range(1, 301))


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
async def test_a_database_locked_by_another_is_waited_for(
    store: Store, journal: Journal, new_run: NewRun
) -> None:
    run = new_run()
    writer = JournalWriter(journal, run.id, store.evidence_dir(run.id))
    with journal.begin():
        asking = asyncio.create_task(writer.dispatch(a_dispatch()))
        await asyncio.sleep(0.3)
        assert not asking.done()
    assert isinstance(await asking, Granted)
    writer.close()


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
async def test_a_full_disk_fails_what_it_concerns_and_says_so(
    store: Store, journal: Journal, new_run: NewRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resources.journal.group_commit._RETRY_S", 1.0)
    run = new_run(total_cells=500)
    with journal.begin() as connection:
        pages = connection.execute(text("PRAGMA page_count")).scalar_one()

    @event.listens_for(journal.engine, "begin")
    def _small_disk(connection: Connection) -> None:
        connection.exec_driver_sql(f"PRAGMA max_page_count={pages + 20}")

    writer = JournalWriter(journal, run.id, store.evidence_dir(run.id))
    refused: SrBenchError | None = None
    done = 0
    ends: list[CallEnd] = []
    began = time.monotonic()
    for number in range(500):
        dispatch = a_dispatch(number, reserved_pico=1)
        try:
            await writer.dispatch(dispatch)
            ends.append(an_end(dispatch, spent_pico=1, record={"text": "x" * 2000}))
            await writer.finish(ends[-1], a_result(dispatch))
            done += 1
        except SrBenchError as error:
            refused = error
            break
    assert refused is not None
    assert (refused.code, refused.exit_code) == ("disk_full", 4)
    assert time.monotonic() - began < 30  # told soon, not tried for a minute an operation
    assert len(list_results(journal, run.id)) == done
    event.remove(journal.engine, "begin", _small_disk)
    journal.close()
    with journal.begin() as connection:
        connection.execute(text("PRAGMA max_page_count=1000000"))
    if len(ends) > done:  # space again: the end that could not be written is written after all
        await writer.finish(ends[-1])
    writer.close()
    assert all(call.outcome == "completed" for call in list_calls(journal, run.id)[:done])
