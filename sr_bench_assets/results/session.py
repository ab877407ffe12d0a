"""From an executor to a model: every call is reserved, journaled, sent, priced and journaled again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from decimal import Context, Decimal, Inexact
from typing import Any, Literal

from resources.canonical import sha256_bytes
from resources.errors import SrBenchError
from resources.gateway.outcome import CallOutcome
from resources.gateway.request import ChatRequest, build_request
from resources.gateway.timer import Timer
from resources.journal.calls import CallEnd, Dispatch, new_call_id
from resources.journal.verdicts import BudgetExhausted, Duplicate, Granted, RateLimited
from sr_bench_assets.benchmarks.contract import CallView
from sr_bench_assets.results.call_records import (
    call_end,
    call_view,
    failed_view,
    reserved_pico,
    reserved_tokens,
)
from sr_bench_assets.results.dispatcher import Endpoint, NotDispatched, Slot
from sr_bench_assets.results.pacing import Turn, pause_after_refusal
from sr_bench_assets.results.run_calls import Place, RunCalls

Role = Literal["subject", "judge", "simulator"]
_EXACT = Context(prec=400, traps=[Inexact])


class CellSession:
    """The calls of one cell; a `CaseSession` for the benchmark's executor."""

    __slots__ = (
        "_benchmark",
        "_calls_only",
        "_case_id",
        "_clock",
        "_commits",
        "_cut",
        "_end",
        "_loop",
        "_place",
        "_run",
        "_slot",
        "_steps",
        "_task",
        "_turn",
        "accepted",
        "attempts",
        "call_count",
        "cost_usd",
        "latency_s",
        "options",
    )

    def __init__(
        self, run: RunCalls, benchmark: str, case_id: str, target_id: str, slot: Slot, turn: Turn
    ) -> None:
        self.options: Mapping[str, Any] = run.plan.benchmark_options.get(benchmark, {})
        self.call_count = 0
        """Calls begun, attempts of one call counted once."""
        self.accepted = 0
        """Calls that were sent and not refused."""
        self.attempts = 0
        """Requests sent, refused ones too."""
        self.latency_s = 0.0
        """Time spent in subject calls."""
        self.cost_usd: Decimal | None = Decimal(0)
        """Exact cost of all subject calls; None where any of them is unknown."""
        self._run = run
        self._benchmark = benchmark
        self._calls_only = benchmark in run.calls_only
        self._case_id = case_id
        self._place = run.subjects[target_id]
        self._slot = slot
        self._turn: Turn | None = turn
        self._steps: dict[Role, int] = {}
        self._end: CallEnd | None = None
        self._commits: list[asyncio.Future[None]] = []
        self._clock: Timer | None = None
        self._task: asyncio.Task[Any] | None = None
        self._cut: str | None = None
        self._loop = asyncio.get_running_loop()

    # what the executor calls

    async def call(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        role: Role = "subject",
        extra: Mapping[str, Any] | None = None,
    ) -> CallView:
        """Send one chat completion and return its derived record, failed or not.

        Raises `NotDispatched` when the run is stopping or the endpoint's circuit is open: no executor should
        catch it.
        """
        run = self._run
        limits = run.plan.limits
        self._refuse_if_cut()
        if self.call_count >= limits.max_calls_per_case:
            return failed_view("max_calls_per_case")
        self.call_count += 1
        place = self._place if role == "subject" else run.auxiliary[role]
        session_id = None if place.target.kind == "single" else self._session_id()
        request = build_request(
            place.target, run.plan.sampling, limits, messages, extra, session_id=session_id
        )
        step = self._steps.get(role, 0)
        self._steps[role] = step + 1
        asked_at = self._loop.time()
        turn = await self._first_turn(place.endpoint, role)
        attempt = 0
        while True:
            call_id = new_call_id()
            turn = await self._dispatched(place, request, role, step, attempt, turn, call_id, asked_at)
            outcome = await self._sent(place, request, role, call_id, turn)
            if outcome.kind != "refused":
                break
            self._flush_end()
            if attempt >= limits.max_rejections_per_call:
                run.dispatcher.failed(place.endpoint, "http_error")
                if not self.accepted:
                    raise NotDispatched("refused")
                return failed_view("http_error")
            self._refuse_if_cut()
            pause = pause_after_refusal(outcome.retry_after_s, attempt, run.random)
            run.notices.waiting(place.endpoint.key, pause, "it refused a request")
            attempt += 1
            asked_at = self._loop.time()
            turn = await run.dispatcher.turn(place.endpoint, self._slot, ready_at=asked_at + pause)
        return call_view(call_id, outcome)

    # what the runner of the cell calls

    def take_end(self) -> CallEnd | None:
        """The end of the last call, if it has not been handed to the journal yet; the caller does that now."""
        end, self._end = self._end, None
        return end

    async def close(self) -> None:
        """Wait until all ends of calls are durable."""
        self._flush_end()
        for commit in self._commits:
            await commit

    def settled(self) -> None:
        """The end that `take_end` gave away is in the journal."""
        self._run.dispatcher.settled()

    def leave(self) -> None:
        """No further call comes: stop the case's clock, and give slot and unused turn back."""
        if self._clock is not None:
            self._clock.cancel()
        if self._turn is not None:
            self._run.dispatcher.give_back(self._place.endpoint)
            self._turn = None
        self._run.dispatcher.leave(self._slot)

    # the steps of one call

    def _refuse_if_cut(self) -> None:
        if self._cut is not None:
            raise NotDispatched(self._cut)

    def _cut_late(self, reason: str) -> None:
        """The cell was cancelled when its call was over: what came back counts, nothing more is sent."""
        self._cut = reason

    def _case_is_over(self) -> None:
        assert self._task is not None  # the clock was set in it
        self._task.cancel("case_timeout")

    def _session_id(self) -> str:
        """One conversation of a session-aware router is one cell of one run; the id tells nothing else."""
        cell = f"{self._run.run_id}\n{self._case_id}\n{self._place.target.id}"
        return sha256_bytes(cell.encode())[:32]

    async def _first_turn(self, endpoint: Endpoint, role: Role) -> Turn:
        if role == "subject" and self._turn is not None:
            turn, self._turn = self._turn, None
            return turn
        return await self._run.dispatcher.turn(endpoint, self._slot)

    async def _dispatched(
        self,
        place: Place,
        request: ChatRequest,
        role: Role,
        step: int,
        attempt: int,
        turn: Turn,
        call_id: str,
        asked_at: float,
    ) -> Turn:
        """Get the dispatch record: waits for the target's rates and the budget; returns the turn to send in."""
        dispatcher, endpoint = self._run.dispatcher, place.endpoint
        self._flush_end()
        while True:
            dispatcher.asking()
            try:
                verdict = await self._run.writer.dispatch(
                    Dispatch(
                        benchmark=self._benchmark,
                        case_id=self._case_id,
                        target_id=self._place.target.id,
                        role=role,
                        step=step,
                        attempt=attempt,
                        request_sha256=request.sha256,
                        reserved_pico=reserved_pico(request, place.bound),
                        reserved_tokens=reserved_tokens(request),
                        rate=place.rate,
                        queue_wait_s=self._loop.time() - asked_at,
                        call_id=call_id,
                    )
                )
            except BaseException as error:
                dispatcher.settled()
                dispatcher.give_back(endpoint)
                if isinstance(error, SrBenchError):
                    self._run.halted(error)
                    raise NotDispatched(error.code) from error
                raise
            if isinstance(verdict, Granted):
                dispatcher.granted(endpoint)
                return turn
            if isinstance(verdict, RateLimited):
                ready_at = self._loop.time() + max(0.0, verdict.until - time.time())
                self._run.notices.waiting(
                    endpoint.key, ready_at - self._loop.time(), f"its {verdict.cause} are used up"
                )
                dispatcher.rate_limited(endpoint, ready_at)
                turn = await dispatcher.turn(endpoint, self._slot, ready_at=ready_at)
            elif isinstance(verdict, BudgetExhausted):
                hopeless = verdict.needed_pico > verdict.available_pico + verdict.reserved_pico
                await dispatcher.wait_for_budget(endpoint, hopeless=hopeless)
                turn = await dispatcher.turn(endpoint, self._slot)
            else:
                dispatcher.settled()
                dispatcher.give_back(endpoint)
                if isinstance(verdict, Duplicate):
                    raise NotDispatched("dispatched_elsewhere")
                self._run.halted(verdict)
                raise NotDispatched(verdict.reason)

    async def _sent(
        self, place: Place, request: ChatRequest, role: Role, call_id: str, turn: Turn
    ) -> CallOutcome:
        """Send a dispatched request; whatever happens, its end is on its way to the journal on return."""

        dispatcher = self._run.dispatcher
        over = False

        async def decided(refused: bool) -> None:
            nonlocal over
            if not refused:
                over = True
                dispatcher.replied(place.endpoint, turn)
                if self._calls_only:
                    dispatcher.leave(self._slot)
            await self._run.turnstile.through()

        def ended(outcome: CallOutcome) -> None:
            if outcome.kind == "refused":
                pause = 1.0 if outcome.retry_after_s is None else outcome.retry_after_s
                dispatcher.refused(place.endpoint, turn, pause)
            elif not over:
                dispatcher.replied(place.endpoint, turn)
            self._ended(place, role, call_id, outcome)

        self.attempts += 1
        limits = self._run.plan.limits
        if self._clock is None:
            # The case's time begins with its first request; the wait for a place is not the case's.
            self._task = asyncio.current_task()
            self._clock = Timer(self._loop, limits.case_timeout_s, self._case_is_over)
        try:
            outcome = await self._run.client.send(
                request,
                api_key=place.api_key,
                limits=limits,
                target=place.target,
                on_cancelled=ended,
                on_decided=decided,
                on_late_cancel=self._cut_late,
            )
        except Exception as error:
            # A fault of ours: nobody knows what the call came to. It costs this cell, and no turn or slot.
            if not over:
                dispatcher.replied(place.endpoint, turn)
            self.accepted += 1
            self.cost_usd = None
            self._end = CallEnd(
                call_id,
                self._benchmark,
                "failed",
                spent_pico=None,
                failure="client_error",
                record={"detail": type(error).__name__},
            )
            self._loop.call_soon(self._flush_end)
            raise
        ended(outcome)
        return outcome

    def _ended(self, place: Place, role: Role, call_id: str, outcome: CallOutcome) -> None:
        end = self._end = call_end(call_id, self._benchmark, outcome, place.target)
        # An executor that comes back without waiting for anything has the end committed with its result, in one
        # transaction; otherwise it goes to the journal at the loop's next turn.
        self._loop.call_soon(self._flush_end)
        if outcome.kind == "refused":
            return
        self.accepted += 1
        if role == "subject":
            self.latency_s += outcome.latency_s
            if self.cost_usd is not None:
                self.cost_usd = None if end.cost_usd is None else _EXACT.add(self.cost_usd, end.cost_usd)
        self._run.dispatcher.ended(place.endpoint, outcome.reply.failure)

    def _flush_end(self) -> None:
        end = self.take_end()
        if end is not None:
            commit = self._run.writer.finishing(end)
            commit.add_done_callback(lambda _: self._run.dispatcher.settled())
            self._commits.append(commit)
