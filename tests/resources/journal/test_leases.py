from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import update

from resources.errors import SrBenchError
from resources.journal.calls import list_calls
from resources.journal.connection import Journal
from resources.journal.leases import (
    STALE_S,
    acquire_lease,
    beat,
    live_runner,
    process_alive,
    reconcile_dead_runs,
    release_lease,
)
from resources.journal.processes import host_name, this_process
from resources.journal.progress import progress
from resources.journal.results import list_results
from resources.journal.runs import Run, get_run, list_events, request_cancel
from resources.journal.schema import run_leases
from resources.journal.writer import JournalWriter
from resources.store import Store

from .conftest import NewRun
from .examples import a_dispatch, a_result, an_end

ROOT = Path(__file__).parents[3]
HOLDER = """
import sys, time
from resources.store import Store
from resources.journal.connection import open_journal
from resources.journal.leases import acquire_lease
journal = open_journal(Store.open(sys.argv[1]))
try:
    acquire_lease(journal, sys.argv[2], sys.argv[3])
except Exception as error:
    print(error.code, flush=True)
else:
    print("held", flush=True)
    time.sleep(60)
"""


class Holder:
    """Another process that takes a lease and keeps it until it is killed."""

    def __init__(self, store: Store, run_id: str, partition: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLDER, store.root, run_id, partition], cwd=ROOT, stdout=-1, text=True
        )
        assert self.process.stdout is not None
        self.said = self.process.stdout.readline().strip()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


@pytest.fixture
def holders() -> Iterator[list[Holder]]:
    started: list[Holder] = []
    yield started
    for holder in started:
        holder.kill()


def test_liveness_sees_pid_start_and_host() -> None:
    me = this_process()
    assert process_alive(me.pid, me.started, me.host) is True
    assert process_alive(me.pid, me.started - 100, me.host) is False  # an earlier process with the same pid
    assert process_alive(me.pid, me.started, "elsewhere") is None
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    assert process_alive(child.pid, time.time(), host_name()) is True
    child.kill()
    deadline = time.monotonic() + 5
    while process_alive(child.pid, time.time(), host_name()) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert process_alive(child.pid, time.time(), host_name()) is False  # killed, not yet waited for
    child.wait()
    assert process_alive(child.pid, time.time(), host_name()) is False


def test_a_second_runner_is_refused_while_the_first_lives(
    store: Store, journal: Journal, new_run: NewRun, holders: list[Holder]
) -> None:
    run = new_run(partitions=("mmlu-pro",))
    holders.append(Holder(store, run.id, "mmlu-pro"))
    assert holders[0].said == "run_active"
    holders.append(Holder(store, run.id, "hle"))
    assert holders[1].said == "held"
    with pytest.raises(SrBenchError, match="another runner") as caught:
        acquire_lease(journal, run.id, "hle")
    assert caught.value.mend
    assert acquire_lease(journal, run.id, "mmlu-pro").holder == this_process()


def test_of_many_runners_at_once_one_gets_the_lease(
    store: Store, journal: Journal, new_run: NewRun, holders: list[Holder]
) -> None:
    run = new_run(partitions=())
    start = [
        subprocess.Popen(
            [sys.executable, "-c", HOLDER, store.root, run.id, "hle"], cwd=ROOT, stdout=-1, text=True
        )
        for _ in range(6)
    ]
    said = sorted(process.stdout.readline().strip() for process in start if process.stdout)
    for process in start:
        process.kill()
        process.communicate()
    assert said == ["held"] + ["run_active"] * 5


def test_a_released_lease_can_be_taken_again(journal: Journal, new_run: NewRun) -> None:
    run = new_run(partitions=())
    lease = acquire_lease(journal, run.id, "hle")
    assert live_runner(journal, run.id) == this_process()
    release_lease(journal, lease)
    assert live_runner(journal, run.id) is None
    assert acquire_lease(journal, run.id, "hle") == lease
    assert reconcile_dead_runs(journal) == []


async def leave_cells(store: Store, journal: Journal, run: Run) -> None:
    """Cells in each state: 0 completed, 1 in flight, 2 call ended but not graded, 3 refused, 4 given up."""
    writer = JournalWriter(journal, run.id, store.evidence_dir(run.id))
    asked = [a_dispatch(case) for case in range(5)]
    for dispatch in asked:
        await writer.dispatch(dispatch)
    await writer.finish(an_end(asked[0]), a_result(asked[0]))
    await writer.finish(an_end(asked[2]))
    await writer.finish(an_end(asked[3], outcome="refused", spent_pico=0))
    await writer.result(a_result(asked[4], status="failed", failure="case_timeout", correct=None))
    writer.close()


def pretend_dead(journal: Journal, run: Run, partition: str = "mmlu-pro") -> None:
    with journal.begin() as connection:
        held = update(run_leases).where(run_leases.c.run_id == run.id, run_leases.c.partition == partition)
        connection.execute(held.values(pid=2**22 + 1))


async def test_each_cell_of_a_dead_run_gets_the_state_its_calls_prove(
    store: Store, journal: Journal, new_run: NewRun
) -> None:
    run = new_run(total_cells=8)
    await leave_cells(store, journal, run)
    assert reconcile_dead_runs(journal) == []  # its runner, this process, lives
    pretend_dead(journal, run)
    (dead,) = reconcile_dead_runs(journal)
    assert (dead.run_id, dead.partitions, dead.status) == (run.id, ("mmlu-pro",), "interrupted")
    assert (dead.ambiguous, dead.failed) == (1, 1)
    states = {result.case_id: (result.status, result.failure) for result in list_results(journal, run.id)}
    assert states == {
        "mmlu-pro/0": ("completed", None),
        "mmlu-pro/1": ("ambiguous", "interrupted"),
        "mmlu-pro/2": ("failed", "interrupted"),
        "mmlu-pro/4": ("failed", "case_timeout"),
    }
    found = progress(journal, run.id)
    assert (found.completed, found.failed, found.ambiguous, found.running, found.undispatched) == (
        1,
        2,
        1,
        0,
        4,
    )
    after = get_run(journal, run.id)
    money = [int(amount.scaleb(12)) for amount in (after.reserved_usd, after.spent_usd, after.unknown_usd)]
    assert money == [0, 80, 200]  # calls 1 and 4 have no known end: their reservations stay as unknown spend
    assert list_calls(journal, run.id, active=True) == []
    assert [event.kind for event in list_events(journal, run.id)] == ["ended"]
    assert reconcile_dead_runs(journal) == []


async def test_only_the_dead_partition_is_ended_while_another_runner_lives(
    store: Store, journal: Journal, new_run: NewRun
) -> None:
    run = new_run(partitions=("mmlu-pro", "hle"))
    await leave_cells(store, journal, run)
    pretend_dead(journal, run, "hle")
    (dead,) = reconcile_dead_runs(journal)
    assert (dead.partitions, dead.status, dead.ambiguous, dead.failed) == (("hle",), "running", 0, 0)
    assert progress(journal, run.id).running == 3
    pretend_dead(journal, run)
    (dead,) = reconcile_dead_runs(journal)
    assert (dead.partitions, dead.status, dead.ambiguous) == (("mmlu-pro",), "interrupted", 1)


async def test_a_runner_that_died_after_the_last_case_left_a_completed_run(
    store: Store, journal: Journal, new_run: NewRun
) -> None:
    run = new_run(total_cells=1)
    writer = JournalWriter(journal, run.id, store.evidence_dir(run.id))
    dispatch = a_dispatch()
    await writer.dispatch(dispatch)
    await writer.finish(an_end(dispatch), a_result(dispatch))
    writer.close()
    pretend_dead(journal, run)
    assert reconcile_dead_runs(journal)[0].status == "completed"


def test_a_dead_run_that_was_to_be_cancelled_is_cancelled(journal: Journal, new_run: NewRun) -> None:
    run = new_run()
    request_cancel(journal, run.id)
    pretend_dead(journal, run)
    assert reconcile_dead_runs(journal)[0].status == "cancelled"


def test_runners_on_other_hosts_live_by_their_heartbeat(journal: Journal, new_run: NewRun) -> None:
    run = new_run()
    before = time.time() - STALE_S + 5
    with journal.begin() as connection:
        connection.execute(update(run_leases).values(heartbeat_at=before))
    beat(journal, run.id)
    with journal.begin() as connection:
        changed = update(run_leases).where(run_leases.c.heartbeat_at > before).values(host="elsewhere")
        assert connection.execute(changed).rowcount == 1
    assert reconcile_dead_runs(journal) == []
    with journal.begin() as connection:
        connection.execute(update(run_leases).values(heartbeat_at=before - 10))
    assert reconcile_dead_runs(journal)[0].status == "interrupted"


def test_taking_the_lease_of_a_killed_runner_reconciles_and_refuses(
    store: Store, journal: Journal, new_run: NewRun, holders: list[Holder]
) -> None:
    run = new_run(partitions=())
    holders.append(Holder(store, run.id, "hle"))
    holders[0].kill()
    with pytest.raises(SrBenchError, match="has ended as interrupted"):
        acquire_lease(journal, run.id, "hle")
    assert get_run(journal, run.id).reason == f"its runner (pid {holders[0].process.pid}) died"


async def test_an_end_that_comes_after_reconciliation_is_kept_and_priced(
    store: Store, journal: Journal, new_run: NewRun
) -> None:
    run = new_run()
    writer = JournalWriter(journal, run.id, store.evidence_dir(run.id))
    dispatch = a_dispatch()
    await writer.dispatch(dispatch)
    pretend_dead(journal, run)
    reconcile_dead_runs(journal)
    await writer.finish(an_end(dispatch), a_result(dispatch))
    writer.close()
    (call,) = list_calls(journal, run.id)
    assert (call.outcome, call.failure, call.evidence_length) == ("completed", None, 3)
    after = get_run(journal, run.id)
    assert [int(amount.scaleb(12)) for amount in (after.spent_usd, after.unknown_usd)] == [40, 0]
    assert [result.status for result in list_results(journal, run.id)] == [
        "ambiguous"
    ]  # told once, it stays told


def test_simultaneous_reconciliations_agree(store: Store, journal: Journal, new_run: NewRun) -> None:
    for _ in range(4):
        pretend_dead(journal, new_run())
    program = (
        "import sys; from resources.store import Store; from resources.journal.connection import open_journal\n"
        "from resources.journal.leases import reconcile_dead_runs\n"
        "print(len(reconcile_dead_runs(open_journal(Store.open(sys.argv[1])))))"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", program, store.root], cwd=ROOT, stdout=-1, text=True)
        for _ in range(4)
    ]
    assert sum(int(process.communicate(timeout=60)[0]) for process in processes) == 4


def test_a_forked_child_is_another_holder(journal: Journal, new_run: NewRun) -> None:
    new_run()
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        os.write(writer, str(this_process().pid).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert int(os.read(reader, 20)) == child
