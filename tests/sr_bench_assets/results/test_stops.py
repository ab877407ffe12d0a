"""What stops a run, and that nothing which came back is lost to it."""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter
from typing import Any

import psutil
import pytest

from resources.errors import Incomplete, Unavailable
from resources.gateway.client import GatewayClient
from resources.journal.commit_process import CommitProcess
from resources.journal.runs import get_run, list_events, request_cancel
from sr_bench_assets.results.execution import RunExecution
from sr_bench_assets.results.turnstile import Turnstile
from tests.sr_bench_assets.results.conftest import BENCHMARK, World

_SLOW = {"kind": "slow", "always": True, "seconds": 0.2}


def test_a_cancellation_that_a_dispatch_meets_first_is_one(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sr_bench_assets.results.execution.POLL_S", 30.0)
    lab = world.lab(faults=[_SLOW])
    run = world.new_run(plan := world.plan(lab, cases=20, limits={"concurrency": 1}))
    execution = world.execution(plan, run)
    execution.start()
    while lab.stats()["requests"] < 2:
        time.sleep(0.01)
    request_cancel(world.journal, run.id)
    with pytest.raises(Incomplete):
        execution.wait(BENCHMARK)
    execution.close()
    run = get_run(world.journal, run.id)
    assert (run.status, run.reason) == ("cancelled", "cancellation was requested")


def test_an_answer_that_has_come_back_is_graded_whatever_stops_the_run(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    through = Turnstile.through

    async def crowded(self: Turnstile) -> None:
        await asyncio.sleep(0.5)
        await through(self)

    monkeypatch.setattr(Turnstile, "through", crowded)
    lab = world.lab()
    run = world.new_run(plan := world.plan(lab, cases=30))
    execution = world.execution(plan, run)
    execution.start()
    while lab.stats()["requests"] < 8:
        time.sleep(0.01)
    time.sleep(0.25)
    execution.stop("enough")
    with pytest.raises(Incomplete):
        execution.wait(BENCHMARK)
    execution.close()
    calls, results = world.calls(run), world.results(run)
    assert get_run(world.journal, run.id).status == "cancelled"
    assert len(calls) == len(results) > 8
    by_case = {result.case_id: result.status for result in results}
    assert all(by_case[call.case_id] == call.outcome for call in calls)
    assert sum(call.outcome == "completed" for call in calls) >= 8


def test_a_partial_run_says_which_target_refused_and_how_often(world: World) -> None:
    lab = world.lab(faults=[{"kind": "unavailable", "always": True, "retry_after_s": 0.05}])
    plan = world.plan(lab, cases=4, limits={"max_rejections_per_call": 2, "max_consecutive_failures": 100})
    run, _ = world.execute(plan)
    assert run.reason == (
        "4 of 4 cells were not dispatched (lab-small: 4 refused until max_rejections_per_call (2) was reached)"
    )


def test_a_run_that_waits_says_what_for(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sr_bench_assets.results.notices.TOLD_WAIT_S", 0.2)
    lab = world.lab(
        faults=[{"kind": "unavailable", "always": True, "first_attempts": 1, "retry_after_s": 0.3}]
    )
    run, _ = world.execute(world.plan(lab, cases=2))
    told = [event.message for event in list_events(world.journal, run.id) if event.kind == "waiting"]
    assert told == ["lab-small: it refused a request; the next call may leave in 0 s"]


def test_a_fault_of_ours_costs_one_call_and_no_place(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    send = GatewayClient.send
    sent = 0

    async def faulty(self: GatewayClient, *args: Any, **options: Any) -> Any:
        nonlocal sent
        sent += 1
        number = sent
        outcome = await send(self, *args, **options)
        if number % 4 == 0:
            raise RuntimeError("a fault of the client")
        return outcome

    monkeypatch.setattr(GatewayClient, "send", faulty)
    lab = world.lab()
    run, _ = world.execute(world.plan(lab, cases=24, limits={"concurrency": 2}))
    assert run.status == "completed"
    failures = Counter(result.failure for result in world.results(run))
    assert failures == {None: 18, "executor_error": 6}
    assert Counter(call.failure for call in world.calls(run)) == {None: 18, "client_error": 6}
    assert run.reserved_usd == 0
    assert run.unknown_usd > 0
    assert (lab.stats()["requests"], lab.stats()["resends"]) == (24, 0)


def test_a_run_may_have_its_commits_made_by_a_process(world: World) -> None:
    lab = world.lab()
    run = world.new_run(plan := world.plan(lab, cases=40, targets=("lab-small", "lab-router")))
    execution = RunExecution(
        world.store, world.journal, plan, run.id, [BENCHMARK], world.env, commits=CommitProcess.spawned()
    )
    execution.start()
    execution.wait(BENCHMARK)
    execution.close()
    assert get_run(world.journal, run.id).status == "completed"
    assert Counter(result.status for result in world.results(run)) == {"completed": 80}
    assert _committing() == []


def test_a_committing_process_that_dies_ends_the_run_and_loses_nothing_committed(world: World) -> None:
    lab = world.lab(faults=[_SLOW])
    run = world.new_run(plan := world.plan(lab, cases=60, limits={"concurrency": 4}))
    commits = CommitProcess.spawned()
    (child,) = _committing()
    execution = RunExecution(
        world.store, world.journal, plan, run.id, [BENCHMARK], world.env, commits=commits
    )
    execution.start()
    while len(world.results(run)) < 5:
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    with pytest.raises((Unavailable, Incomplete)):
        execution.wait(BENCHMARK)
    execution.close()
    run = get_run(world.journal, run.id)
    assert run.status == "failed"
    assert "the process that writes the journal has ended" in (run.reason or "")
    results = world.results(run)
    assert {result.status for result in results} <= {"completed", "ambiguous"}
    assert len(results) == len(world.calls(run)) == lab.stats()["requests"]
    assert sum(result.status == "completed" for result in results) >= 5


def _committing() -> list[psutil.Process]:
    """Processes that commit for this one (a database server may be its child too)."""
    children = psutil.Process().children()
    return [child for child in children if any("commit_process" in part for part in child.cmdline())]
