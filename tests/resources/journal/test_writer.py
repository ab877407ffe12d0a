from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from decimal import Decimal

import pytest
from sqlalchemy import update

from resources.errors import NotFound, SrBenchError
from resources.journal.calls import RateCeiling, dispatched_cells, get_call, list_calls
from resources.journal.commit_process import CommitProcess
from resources.journal.connection import Journal
from resources.journal.evidence import FramePlace, read_frame
from resources.journal.progress import progress, progress_by
from resources.journal.results import list_results
from resources.journal.runs import Run, finish_run, get_run, request_cancel
from resources.journal.schema import calls
from resources.journal.writer import (
    BudgetExhausted,
    Duplicate,
    Granted,
    JournalWriter,
    RateLimited,
    Stopped,
)
from resources.store import Store

from .conftest import NewRun
from .examples import a_dispatch, a_result, an_end


class Opened:
    """A writer on a run."""

    def __init__(self, store: Store, journal: Journal, run: Run, commits: CommitProcess | None) -> None:
        self.store, self.journal, self.run = store, journal, run
        if commits is not None:
            commits.serve(store, run.id)
        self.writer = JournalWriter(journal, run.id, store.evidence_dir(run.id), commits)

    def now(self) -> Run:
        return get_run(self.journal, self.run.id)


@pytest.fixture(params=["thread", "process"])
def opened(
    store: Store, journal: Journal, new_run: NewRun, request: pytest.FixtureRequest
) -> Iterator[Opened]:
    commits = CommitProcess.spawned() if request.param == "process" else None
    found = Opened(store, journal, new_run(budget_usd="0.000000000250", total_cells=10), commits)
    yield found
    found.writer.close()


def pico(amount: Decimal) -> int:
    return int(amount.scaleb(12))


async def test_a_dispatch_is_readable_before_its_answer_and_carries_its_reservation(opened: Opened) -> None:
    dispatch = a_dispatch(queue_wait_s=0.5)
    verdict = await opened.writer.dispatch(dispatch)
    assert isinstance(verdict, Granted)
    (call,) = list_calls(opened.journal, opened.run.id, active=True)
    assert (call.id, call.seq, call.outcome, call.queue_wait_s) == (verdict.call_id, 1, None, 0.5)
    assert call.dispatched_at == verdict.dispatched_at
    assert pico(opened.now().reserved_usd) == 100
    assert dispatched_cells(opened.journal, opened.run.id) == {("mmlu-pro/0", "t")}


async def test_an_end_releases_the_reservation_and_points_to_its_evidence(opened: Opened) -> None:
    dispatch = a_dispatch()
    await opened.writer.dispatch(dispatch)
    record = {"text": "lone \ud800 surrogate, NUL \x00", "big": 10**30}
    end = an_end(
        dispatch,
        model="m\x00\ud800",
        record=record,
        input_tokens=2**70,
        output_tokens=7,
        cost_usd=Decimal("4E-11"),
    )
    await opened.writer.finish(end, a_result(dispatch, answer=["B", 1], cost_usd=Decimal("0.10"), score=0.5))
    call = get_call(opened.journal, dispatch.call_id[:12])
    assert (call.outcome, call.model, call.input_tokens, call.output_tokens) == ("completed", "m��", None, 7)
    assert call.record["text"] == record["text"]
    assert call.cost_usd == Decimal("0.00000000004")
    assert call.evidence_segment is not None
    place = FramePlace(call.evidence_segment, call.evidence_offset or 0, call.evidence_length or 0)
    assert read_frame(opened.store.evidence_dir(opened.run.id), place) == b"abc"
    (result,) = list_results(opened.journal, opened.run.id)
    assert (result.seq, result.answer, result.cost_usd, result.score) == (1, ["B", 1], Decimal("0.1"), 0.5)
    after = opened.now()
    assert (pico(after.reserved_usd), pico(after.spent_usd), pico(after.unknown_usd)) == (0, 40, 0)


async def test_unknown_spend_keeps_its_reservation_and_refusals_cost_nothing(opened: Opened) -> None:
    lost, refused = a_dispatch(1), a_dispatch(2)
    await opened.writer.dispatch(lost)
    await opened.writer.dispatch(refused)
    await opened.writer.finish(an_end(lost, outcome="failed", failure="stalled", spent_pico=None))
    await opened.writer.finish(an_end(refused, outcome="refused", spent_pico=0, evidence=b""))
    after = opened.now()
    assert (pico(after.reserved_usd), pico(after.spent_usd), pico(after.unknown_usd)) == (0, 0, 100)
    part = progress_by(opened.journal, opened.run.id)["mmlu-pro", "t"]
    assert (part.calls, part.unknown_spend_calls, part.running) == (2, 1, 2)


async def test_the_budget_is_never_overspent_whatever_is_asked_at_once(opened: Opened) -> None:
    verdicts = await asyncio.gather(*(opened.writer.dispatch(a_dispatch(case)) for case in range(40)))
    assert sum(isinstance(verdict, Granted) for verdict in verdicts) == 2
    refusals = [verdict for verdict in verdicts if isinstance(verdict, BudgetExhausted)]
    assert refusals[0] == BudgetExhausted(needed_pico=100, available_pico=50, reserved_pico=200)
    assert len(refusals) == 38
    assert len(list_calls(opened.journal, opened.run.id)) == 2


async def test_what_comes_back_can_be_spent_again(opened: Opened) -> None:
    first = a_dispatch(1, reserved_pico=250)
    await opened.writer.dispatch(first)
    assert isinstance(await opened.writer.dispatch(a_dispatch(2)), BudgetExhausted)
    await opened.writer.finish(an_end(first, spent_pico=150))
    assert isinstance(await opened.writer.dispatch(a_dispatch(2)), Granted)


async def test_a_step_and_attempt_of_a_cell_is_dispatched_once(opened: Opened) -> None:
    first = a_dispatch(1, reserved_pico=10)
    same, other = a_dispatch(1, reserved_pico=10), a_dispatch(2, reserved_pico=10)
    assert isinstance(await opened.writer.dispatch(first), Granted)
    assert await opened.writer.dispatch(same) == Duplicate(first.call_id)
    both = await asyncio.gather(opened.writer.dispatch(same), opened.writer.dispatch(other))
    assert [type(verdict) for verdict in both] == [Duplicate, Granted]
    again = await opened.writer.dispatch(first)  # as after a commit whose acknowledgement was lost
    assert isinstance(again, Granted)
    assert again.seq == 1
    assert isinstance(await opened.writer.dispatch(a_dispatch(1, attempt=1, reserved_pico=1)), Granted)
    assert pico(opened.now().reserved_usd) == 21


async def test_two_equal_dispatches_in_one_group_are_one(opened: Opened) -> None:
    verdicts = await asyncio.gather(*(opened.writer.dispatch(a_dispatch(1)) for _ in range(5)))
    assert sorted(type(verdict).__name__ for verdict in verdicts) == ["Duplicate"] * 4 + ["Granted"]
    assert pico(opened.now().reserved_usd) == 100


async def test_an_end_that_comes_twice_counts_once(opened: Opened) -> None:
    dispatch = a_dispatch()
    await opened.writer.dispatch(dispatch)
    await opened.writer.finish(an_end(dispatch), a_result(dispatch))
    await opened.writer.finish(an_end(dispatch, spent_pico=99), a_result(dispatch, correct=False))
    assert pico(opened.now().spent_usd) == 40
    assert [result.correct for result in list_results(opened.journal, opened.run.id)] == [True]


async def test_the_end_of_an_unknown_call_fails_alone(opened: Opened) -> None:
    known, unknown = a_dispatch(1), a_dispatch(2)
    await opened.writer.dispatch(known)
    outcomes = await asyncio.gather(
        opened.writer.finish(an_end(known), a_result(known)),
        opened.writer.finish(an_end(unknown)),
        return_exceptions=True,
    )
    assert outcomes[0] is None
    assert isinstance(outcomes[1], NotFound)
    assert len(list_results(opened.journal, opened.run.id)) == 1


async def test_one_operation_that_cannot_be_written_does_not_harm_the_others(opened: Opened) -> None:
    dispatch = a_dispatch()
    await opened.writer.dispatch(dispatch)
    outcomes = await asyncio.gather(
        opened.writer.finish(an_end(dispatch)),
        opened.writer.result(a_result(a_dispatch(3), answer=object())),
        opened.writer.result(a_result(a_dispatch(4))),
        return_exceptions=True,
    )
    assert [type(outcome) for outcome in outcomes] == [type(None), TypeError, type(None)]
    assert [result.case_id for result in list_results(opened.journal, opened.run.id)] == ["mmlu-pro/4"]


async def test_nothing_is_sent_for_a_run_that_is_cancelled_or_over(opened: Opened) -> None:
    dispatch = a_dispatch(1)
    await opened.writer.dispatch(dispatch)
    request_cancel(opened.journal, opened.run.id)
    assert await opened.writer.dispatch(a_dispatch(2)) == Stopped("cancelled")
    finish_run(opened.journal, opened.run.id, "timed_out")
    assert await opened.writer.dispatch(a_dispatch(2)) == Stopped("timed_out")
    await opened.writer.finish(an_end(dispatch), a_result(dispatch))  # what was sent still gets its end
    assert get_call(opened.journal, dispatch.call_id).outcome == "completed"


async def test_a_dispatch_whose_asker_went_away_is_journaled_as_never_sent(opened: Opened) -> None:
    asking = asyncio.create_task(opened.writer.dispatch(a_dispatch()))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    # The withdrawal is asked for as soon as the answer arrives, hence before the answer to this:
    await opened.writer.dispatch(a_dispatch(9, reserved_pico=0))
    opened.writer.close()
    calls = list_calls(opened.journal, opened.run.id)
    assert (calls[0].outcome, calls[0].failure, calls[0].spent_pico) == ("refused", "never_sent", 0)
    assert pico(opened.now().reserved_usd) == 0


async def test_a_cancelled_wait_for_an_end_loses_nothing(opened: Opened) -> None:
    dispatch = a_dispatch()
    await opened.writer.dispatch(dispatch)
    ending = asyncio.create_task(opened.writer.finish(an_end(dispatch), a_result(dispatch)))
    await asyncio.sleep(0)
    ending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ending
    opened.writer.close()
    assert len(list_results(opened.journal, opened.run.id)) == 1
    with pytest.raises(RuntimeError, match="closed"):
        await opened.writer.dispatch(a_dispatch(5))


async def test_requests_per_minute_hold_and_the_wait_is_exact(opened: Opened) -> None:
    rate = RateCeiling("endpoint", requests_per_minute=3)
    asked = [a_dispatch(case, rate=rate, reserved_pico=0) for case in range(5)]
    verdicts = await asyncio.gather(*(opened.writer.dispatch(dispatch) for dispatch in asked))
    granted = [verdict for verdict in verdicts if isinstance(verdict, Granted)]
    limited = [verdict for verdict in verdicts if isinstance(verdict, RateLimited)]
    assert (len(granted), len(limited)) == (3, 2)
    assert {verdict.cause for verdict in limited} == {"requests"}
    first = min(verdict.dispatched_at for verdict in granted)
    assert limited[0].until == pytest.approx(first + 61, abs=0.2)
    await opened.writer.finish(an_end(asked[0], outcome="refused", spent_pico=0))  # a refused request counts
    assert isinstance(await opened.writer.dispatch(asked[4]), RateLimited)
    other = RateCeiling("other", requests_per_minute=3)
    assert isinstance(await opened.writer.dispatch(a_dispatch(9, rate=other, reserved_pico=0)), Granted)


async def test_tokens_per_minute_count_as_reserved_then_as_used(opened: Opened) -> None:
    rate = RateCeiling("endpoint", tokens_per_minute=100)
    first = a_dispatch(1, rate=rate, reserved_tokens=80, reserved_pico=0)
    second = a_dispatch(2, rate=rate, reserved_tokens=60, reserved_pico=0)
    assert isinstance(await opened.writer.dispatch(first), Granted)
    waiting = await opened.writer.dispatch(second)
    assert isinstance(waiting, RateLimited)
    assert waiting.cause == "tokens"
    used = {"input_tokens": 10, "cached_input_tokens": 5, "cache_write_tokens": 0, "output_tokens": 15}
    await opened.writer.finish(an_end(first, spent_pico=0, **used))
    assert isinstance(await opened.writer.dispatch(second), Granted)
    await opened.writer.finish(an_end(second, outcome="refused", spent_pico=0))
    third = a_dispatch(3, rate=rate, reserved_tokens=70, reserved_pico=0)
    assert isinstance(await opened.writer.dispatch(third), Granted)


@pytest.mark.parametrize(("ahead_s", "granted"), [(3600.0, True), (30.0, False)])
async def test_a_clock_that_was_set_back_blocks_for_no_more_than_a_window(
    opened: Opened, ahead_s: float, granted: bool
) -> None:
    rate = RateCeiling("endpoint", requests_per_minute=1)
    assert isinstance(await opened.writer.dispatch(a_dispatch(1, rate=rate, reserved_pico=0)), Granted)
    with opened.journal.begin() as connection:
        connection.execute(update(calls).values(dispatched_at=calls.c.dispatched_at + ahead_s))
    verdict = await opened.writer.dispatch(a_dispatch(2, rate=rate, reserved_pico=0))
    if granted:
        assert isinstance(verdict, Granted)
    else:
        assert isinstance(verdict, RateLimited)
        assert verdict.until <= time.time() + 61.5


async def test_a_call_larger_than_the_token_ceiling_goes_alone(opened: Opened) -> None:
    rate = RateCeiling("endpoint", tokens_per_minute=100)
    large = a_dispatch(1, rate=rate, reserved_tokens=500, reserved_pico=0)
    assert isinstance(await opened.writer.dispatch(large), Granted)
    small = await opened.writer.dispatch(a_dispatch(2, rate=rate, reserved_tokens=1, reserved_pico=0))
    assert isinstance(small, RateLimited)


async def test_calls_in_flight_are_bounded_and_free_their_place(opened: Opened) -> None:
    rate = RateCeiling("endpoint", max_in_flight=2)
    asked = [a_dispatch(case, rate=rate, reserved_pico=0) for case in range(3)]
    verdicts = await asyncio.gather(*(opened.writer.dispatch(dispatch) for dispatch in asked))
    assert [type(verdict) for verdict in verdicts] == [Granted, Granted, RateLimited]
    await opened.writer.finish(an_end(asked[0], spent_pico=0))
    assert isinstance(await opened.writer.dispatch(asked[2]), Granted)


async def test_progress_adds_up_to_all_planned_cells(opened: Opened) -> None:
    done, failed, running, refused = (a_dispatch(case, reserved_pico=1) for case in range(4))
    for dispatch in (done, failed, running, refused):
        await opened.writer.dispatch(dispatch)
    await opened.writer.finish(an_end(done), a_result(done))
    await opened.writer.finish(
        an_end(failed, outcome="failed", failure="stalled"), a_result(failed, status="failed", correct=None)
    )
    await opened.writer.finish(an_end(refused, outcome="refused"))
    found = progress(opened.journal, opened.run.id)
    assert (found.completed, found.failed, found.running, found.undispatched) == (1, 1, 2, 6)
    finish_run(opened.journal, opened.run.id, "partial")
    found = progress(opened.journal, opened.run.id)
    assert (found.running, found.undispatched, found.total) == (0, 8, 10)


async def test_evidence_that_cannot_be_written_fails_its_call_only(opened: Opened) -> None:
    opened.store.evidence_dir(opened.run.id).joinpath("x.0.seg").mkdir()
    good, bad = a_dispatch(1), a_dispatch(2, benchmark="no/such/folder")
    await asyncio.gather(opened.writer.dispatch(good), opened.writer.dispatch(bad))
    outcomes = await asyncio.gather(
        opened.writer.finish(an_end(good)), opened.writer.finish(an_end(bad)), return_exceptions=True
    )
    assert outcomes[0] is None
    assert isinstance(outcomes[1], SrBenchError | OSError)
    assert get_call(opened.journal, bad.call_id).outcome is None


async def test_the_record_is_valid_json_text(opened: Opened) -> None:
    dispatch = a_dispatch()
    await opened.writer.dispatch(dispatch)
    await opened.writer.finish(an_end(dispatch, usage={"status": "ok"}, record={"text": 'quote " and ü'}))
    call = get_call(opened.journal, dispatch.call_id)
    assert call.usage == {"status": "ok"}
    assert json.dumps(call.record, ensure_ascii=False) == '{"text": "quote \\" and ü"}'


async def test_a_dispatch_that_is_cancelled_while_it_is_asked_for_ends_as_never_sent(opened: Opened) -> None:
    asking = asyncio.create_task(opened.writer.dispatch(a_dispatch()))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await opened.writer.drain()
    (call,) = list_calls(opened.journal, opened.run.id)
    assert (call.outcome, call.failure) == ("refused", "never_sent")
    assert opened.now().reserved_usd == 0
