"""Whole runs: real HTTP, real journal, real files."""

from __future__ import annotations

import _thread
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from resources.errors import Incomplete, SrBenchError
from resources.gateway.evidence import decode_evidence, rebuild_reply
from resources.journal.evidence import FramePlace, read_frame
from resources.journal.leases import acquire_lease
from resources.journal.runs import get_run, list_events, request_cancel
from sr_bench_assets.results.execution import ACTIVE, RunExecution
from sr_bench_assets.results.facts import load_calls, load_results
from sr_bench_assets.results.sealing import seal_partition
from tests.sr_bench_assets.results.conftest import BENCHMARK, World


def test_a_run_calls_each_cell_once_and_keeps_everything(world: World) -> None:
    lab = world.lab()
    plan = world.plan(lab, cases=20, targets=("lab-small", "lab-large", "lab-router"))
    run, outcome = world.execute(plan)
    assert run.status == "completed"
    assert outcome.undispatched == 0
    assert outcome.stop is None
    assert (lab.stats()["requests"], lab.stats()["resends"]) == (60, 0)
    calls = world.calls(run)
    assert len(calls) == len(world.results(run)) == 60
    assert all(call.outcome == "completed" and call.lab and call.cost_usd is not None for call in calls)
    assert run.spent_usd == sum((call.cost_usd or Decimal(0) for call in calls), Decimal(0))
    assert run.reserved_usd == run.unknown_usd == 0
    assert {call.selected_model for call in calls if call.target_id == "lab-router"} <= {
        "lab-small",
        "lab-large",
    }
    for call in calls:
        assert call.evidence_segment is not None
        assert call.evidence_offset is not None
        assert call.evidence_length is not None
        place = FramePlace(call.evidence_segment, call.evidence_offset, call.evidence_length)
        frame = read_frame(world.store.evidence_dir(run.id), place)
        reply = rebuild_reply(decode_evidence(frame, sha256=call.evidence_sha256))
        assert (reply.final, reply.usage.as_dict()) == (call.record["final"], call.usage)
    assert ACTIVE == {}


def test_a_cell_with_a_journaled_call_is_never_sent_again(world: World) -> None:
    lab = world.lab()
    plan = world.plan(lab, cases=6)
    run = world.new_run(plan)
    execution = world.execution(plan, run)
    execution.start()
    execution.wait(BENCHMARK)
    # a second runner of the same live run finds nothing to send
    again = world.execution(plan, run)
    again.start()
    assert again.wait(BENCHMARK).seal == seal_partition(world.store, world.journal, run.id, BENCHMARK)
    again.close()
    execution.close()
    assert lab.stats()["requests"] == 6
    with pytest.raises(SrBenchError) as ended:
        world.execution(plan, run).start()
    assert ended.value.code == "run_ended"
    assert get_run(world.journal, run.id).status == "completed"


def test_sealed_facts_equal_the_journal(world: World) -> None:
    lab = world.lab()
    run = world.new_run(plan := world.plan(lab, cases=9, targets=("lab-small", "lab-large")))
    execution = world.execution(plan, run)
    execution.start()
    _until(lambda: len(world.results(run)) == 18)
    from_journal = (
        load_calls(world.store, world.journal, run.id),
        load_results(world.store, world.journal, run.id),
    )
    seal = execution.wait(BENCHMARK).seal
    execution.close()
    calls = load_calls(world.store, world.journal, run.id)
    results = load_results(world.store, world.journal, run.id)
    assert calls.equals(from_journal[0])
    assert results.equals(from_journal[1])
    assert calls.height == results.height == 18
    assert world.store.objects.exists(seal.calls_sha256)
    assert load_calls(world.store, world.journal, run.id, "gpqa-diamond").height == 0


def test_evidence_that_vanished_is_told_when_the_partition_is_sealed(world: World) -> None:
    lab = world.lab()
    run = world.new_run(plan := world.plan(lab, cases=4))
    execution = world.execution(plan, run)
    execution.start()
    execution.wait_for_cells(BENCHMARK)
    for segment in world.store.evidence_dir(run.id).iterdir():
        segment.unlink()
    execution.wait(BENCHMARK)
    execution.close()
    (event,) = [event for event in list_events(world.journal, run.id) if event.kind == "evidence_missing"]
    assert "mmlu-pro.0.seg" in event.message


def test_refusals_are_the_only_thing_repeated(world: World) -> None:
    lab = world.lab(faults=[{"kind": "rate_limit", "rate": 1, "first_attempts": 1, "retry_after_s": 0.2}])
    run, _ = world.execute(world.plan(lab, cases=10))
    assert run.status == "completed"
    calls = world.calls(run)
    assert Counter((call.attempt, call.outcome) for call in calls) == {
        (0, "refused"): 10,
        (1, "completed"): 10,
    }
    assert {result.call_count for result in world.results(run)} == {2}
    assert run.reserved_usd == run.unknown_usd == 0


def test_what_is_refused_for_ever_stays_undispatched(world: World) -> None:
    lab = world.lab(faults=[{"kind": "unavailable", "always": True, "retry_after_s": 0.05}])
    plan = world.plan(lab, cases=4, limits={"max_rejections_per_call": 2, "max_consecutive_failures": 100})
    run, outcome = world.execute(plan)
    assert run.status == "partial"
    assert outcome.undispatched == 4
    assert world.results(run) == []
    assert lab.stats()["requests"] == 12
    assert (run.spent_usd, run.reserved_usd, run.unknown_usd) == (0, 0, 0)


def test_failures_are_results_and_open_the_circuit(world: World) -> None:
    lab = world.lab(
        models={
            "lab-small": {"faults": [{"kind": "http_error", "always": True}], "prices": _PRICES},
            "lab-large": {"prices": _PRICES},
        },
        routers={},
    )
    plan = world.plan(
        lab,
        cases=40,
        targets=("lab-small", "lab-large"),
        limits={"max_consecutive_failures": 5, "concurrency": 2},
    )
    run, outcome = world.execute(plan)
    assert run.status == "partial"
    by_target = Counter((result.target_id, result.status) for result in world.results(run))
    assert by_target["lab-large", "completed"] == 40
    assert 5 <= by_target["lab-small", "failed"] <= 6
    assert outcome.undispatched == 40 - by_target["lab-small", "failed"]
    assert lab.stats()["resends"] == 0
    assert "circuit_open" in {event.kind for event in list_events(world.journal, run.id)}
    assert {r.failure for r in world.results(run) if r.status == "failed"} == {"http_error"}
    assert run.unknown_usd > 0  # nobody knows what a failed call cost


_PRICES = {"input": "0.15", "cached_input": "0.075", "cache_write": "0.15", "output": "0.60"}
_SLOW = {"kind": "slow", "always": True, "seconds": 30}


def test_a_cancelled_run_ends_within_two_seconds_with_its_evidence(world: World) -> None:
    lab = world.lab(faults=[{"kind": "stall", "always": True, "after_events": 2, "seconds": 60}])
    plan = world.plan(lab, cases=30)
    run = world.new_run(plan)
    execution = world.execution(plan, run)
    execution.start()
    _until(lambda: lab.stats()["requests"] == 8)
    time.sleep(0.3)
    asked = time.monotonic()
    request_cancel(world.journal, run.id)
    with pytest.raises(Incomplete):
        execution.wait(BENCHMARK)
    execution.close()
    assert time.monotonic() - asked < 2
    run = get_run(world.journal, run.id)
    assert run.status == "cancelled"
    assert Counter((r.status, r.failure) for r in world.results(run)) == {("failed", "cancelled"): 8}
    calls = world.calls(run)
    assert {(call.outcome, call.failure) for call in calls} == {("failed", "cancelled")}
    assert all(call.record["text"] for call in calls)  # the part that had arrived
    assert lab.stats()["requests"] == 8
    assert run.reserved_usd == 0
    assert run.unknown_usd > 0


def test_should_stop_cancels_too(world: World) -> None:
    lab = world.lab(faults=[_SLOW])
    run = world.new_run(plan := world.plan(lab))
    execution = world.execution(plan, run)
    started = time.monotonic()
    execution.should_stop = lambda: "cancelled in the UI" if time.monotonic() > started + 0.2 else None
    execution.start()
    with pytest.raises(Incomplete, match="cancelled in the UI"):
        execution.wait(BENCHMARK)
    execution.close()
    assert time.monotonic() - started < 3
    assert get_run(world.journal, run.id).status == "cancelled"


def test_an_interrupted_wait_stops_the_run_first(world: World) -> None:
    lab = world.lab(faults=[_SLOW])
    run = world.new_run(plan := world.plan(lab))
    execution = world.execution(plan, run)
    execution.start()
    _until(lambda: lab.stats()["requests"] == 8)
    threading.Timer(0.2, _thread.interrupt_main).start()
    with pytest.raises(KeyboardInterrupt):
        execution.wait(BENCHMARK)
    assert len(world.results(run)) == 8
    execution.close()
    assert get_run(world.journal, run.id).status == "interrupted"


def test_the_run_has_a_time_limit(world: World) -> None:
    lab = world.lab(faults=[_SLOW])
    limits = {"max_run_seconds": 1, "case_timeout_s": 1, "total_timeout_s": 1, "idle_timeout_s": 1}
    plan = world.plan(lab, cases=20, limits={**limits, "connect_timeout_s": 0.5, "concurrency": 2})
    # slower than the run: its own timeouts must not come first
    plan = plan.model_copy(
        update={
            "limits": plan.limits.model_copy(
                update={"total_timeout_s": 9.0, "idle_timeout_s": 9.0, "case_timeout_s": 9.0}
            )
        }
    )
    started = time.monotonic()
    run, outcome = world.execute(plan)
    assert time.monotonic() - started < 4
    assert run.status == "timed_out"
    assert {r.failure for r in world.results(run)} == {"run_timeout"}
    assert {call.failure for call in world.calls(run)} == {"run_timeout"}
    assert outcome.undispatched == 18


def test_a_case_has_a_time_limit(world: World) -> None:
    lab = world.lab(faults=[_SLOW])
    plan = world.plan(lab, cases=3)
    plan = plan.model_copy(update={"limits": plan.limits.model_copy(update={"case_timeout_s": 0.3})})
    run, _ = world.execute(plan)
    assert {(r.status, r.failure) for r in world.results(run)} == {("failed", "case_timeout")}
    assert {call.failure for call in world.calls(run)} == {"case_timeout"}
    assert run.status == "failed"


def test_the_budget_ends_a_run_without_overspending(world: World) -> None:
    lab = world.lab(time_scale=0.2)
    plan = world.plan(
        lab, cases=60, targets=("lab-large",), limits={"max_cost_usd": "0.01"}, sampling={"max_tokens": 300}
    )
    run, outcome = world.execute(plan)
    assert run.status == "budget_exhausted"
    assert outcome.stop is not None
    assert outcome.undispatched > 0
    completed = len(world.results(run))
    assert completed == 60 - outcome.undispatched > 8  # reservations came back and were used again
    assert run.spent_usd <= Decimal("0.01")
    assert run.reserved_usd == 0
    assert lab.stats()["requests"] == completed


def test_a_second_runner_is_refused(world: World) -> None:
    lab = world.lab()
    run = world.new_run(plan := world.plan(lab))
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(world.store.root), run.id, BENCHMARK],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[3],
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(SrBenchError) as refused:
            world.execution(plan, run).start()
        assert refused.value.code == "run_active"
        assert lab.stats()["requests"] == 0
        assert get_run(world.journal, run.id).status == "queued"
    finally:
        holder.kill()
        holder.wait()


_HOLD = """
import sys, time
from resources.store import Store
from resources.journal.connection import open_journal
from resources.journal.leases import acquire_lease
store = Store.open(sys.argv[1])
acquire_lease(open_journal(store), sys.argv[2], sys.argv[3])
print("held", flush=True)
sys.stdin.read()
"""


def test_a_missing_key_ends_the_run_before_anything_is_sent(world: World) -> None:
    lab = world.lab()
    world.env["THE_KEY"] = "sk-secret-of-the-test"
    plan = world.plan(lab, change=lambda target: target.update(api_key_env="THE_KEY"))
    run = world.new_run(plan)
    del world.env["THE_KEY"]
    with pytest.raises(SrBenchError, match="THE_KEY"):
        world.execution(plan, run).start()
    assert get_run(world.journal, run.id).status == "failed"
    assert lab.stats()["requests"] == 0


def test_no_key_is_left_in_the_store(world: World) -> None:
    lab = world.lab(faults=[{"kind": "http_error", "every": 3}])
    world.env["THE_KEY"] = "sk-secret-of-the-test"
    plan = world.plan(lab, change=lambda target: target.update(api_key_env="THE_KEY"))
    world.execute(plan)
    for path in world.store.root.rglob("*"):
        if path.is_file():
            assert b"sk-secret-of-the-test" not in path.read_bytes(), path


def test_a_changed_dataset_is_refused(world: World) -> None:
    lab = world.lab()
    run = world.new_run(plan := world.plan(lab))
    path = Path(plan.dataset.path)
    path.chmod(0o600)
    path.write_bytes(path.read_bytes().replace(b"What", b"Waht", 1))
    with pytest.raises(SrBenchError) as changed:
        world.execution(plan, run).start()
    assert changed.value.code == "changed_dataset"
    assert lab.stats()["requests"] == 0


def test_the_own_rate_limit_holds_and_the_run_ends(world: World) -> None:
    lab = world.lab()
    plan = world.plan(
        lab,
        cases=8,
        change=lambda target: target.update(rate_limit={"requests_per_minute": 5}),
        limits={"max_run_seconds": 3, "case_timeout_s": 3, "total_timeout_s": 3, "idle_timeout_s": 3},
    )
    run, outcome = world.execute(plan)
    assert run.status == "timed_out"
    assert outcome.undispatched == 3
    assert lab.stats()["requests"] == 5
    assert {r.status for r in world.results(run)} == {"completed"}


def test_a_runner_with_a_lease_of_its_own_process_may_start(world: World) -> None:
    lab = world.lab()
    run = world.new_run(plan := world.plan(lab, cases=2))
    acquire_lease(world.journal, run.id, BENCHMARK)
    assert world.execute(plan, run)[0].status == "completed"


def test_calls_flow_across_partition_borders(world: World) -> None:
    """A slow case of the first benchmark does not keep the second one's cells from being sent."""
    lab = world.lab(faults=[{"kind": "slow", "requests": [1], "seconds": 3}])
    plan = world.plan(lab, cases=4, benchmarks=(BENCHMARK, "gpqa-diamond"), limits={"concurrency": 2})
    run = world.new_run(plan)
    execution = world.execution(plan, run)
    execution.start()
    first, second = plan.benchmarks
    execution.wait_for_cells(second)
    assert Counter(result.benchmark for result in world.results(run)) == {first: 3, second: 4}
    outcomes = [execution.wait(benchmark) for benchmark in plan.benchmarks]
    execution.close()
    assert get_run(world.journal, run.id).status == "completed"
    assert [outcome.undispatched for outcome in outcomes] == [0, 0]
    assert outcomes[0].seal != outcomes[1].seal
    assert load_results(world.store, world.journal, run.id, second).height == 4


def test_judge_calls_are_recorded_apart(world: World) -> None:
    judge = {
        "id": "judge",
        "kind": "single",
        "model": "lab-judge",
        "prices": {
            "lab-judge": {"input": "0.4", "cached_input": "0.2", "cache_write": "0.4", "output": "1.6"}
        },
    }
    lab = world.lab()
    judge["base_url"] = lab.base_url
    plan = world.plan(
        lab,
        cases=10,
        benchmarks=("simpleqa-verified",),
        auxiliary_targets={"judge": judge},
        benchmark_options={"simpleqa-verified": {"grader_version": "sr-bench-reference-judge-v1"}},
        limits={"concurrency": 3},
    )
    run, _ = world.execute(plan)
    assert run.status == "completed"
    calls = world.calls(run)
    assert Counter(call.role for call in calls) == {"subject": 10, "judge": 10}
    assert {call.target_id for call in calls} == {"lab-small"}
    subject_cost = sum((call.cost_usd or Decimal(0) for call in calls if call.role == "subject"), Decimal(0))
    assert sum((result.cost_usd or Decimal(0) for result in world.results(run)), Decimal(0)) == subject_cost
    assert run.spent_usd > subject_cost


def test_partitions_of_one_run_may_have_runners_of_their_own(world: World) -> None:
    """The run goes on until the last partition's runner leaves; that one ends it."""
    lab = world.lab()
    plan = world.plan(lab, cases=3, benchmarks=(BENCHMARK, "gpqa-diamond"))
    run = world.new_run(plan)
    for benchmark, status in ((BENCHMARK, "running"), ("gpqa-diamond", "completed")):
        execution = RunExecution(world.store, world.journal, plan, run.id, [benchmark], world.env)
        execution.start()
        execution.wait(benchmark)
        execution.close()
        assert get_run(world.journal, run.id).status == status
    assert (lab.stats()["requests"], lab.stats()["resends"]) == (6, 0)


def test_a_fifth_of_refusals_does_not_stop_a_target(world: World) -> None:
    """Scattered refusals slow a target a little; each refused call waits alone."""
    lab = world.lab(faults=[{"kind": "rate_limit", "rate": 0.2, "first_attempts": 1, "retry_after_s": 1}])
    plan = world.plan(lab, cases=200, limits={"concurrency": 16})
    started = time.monotonic()
    run, _ = world.execute(plan)
    assert run.status == "completed"
    assert time.monotonic() - started < 30  # one after the other the pauses alone would take 40 s
    assert lab.stats()["refused"] > 20


def _until(condition: Callable[[], bool], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
