"""Which cell runs next, and when a call may leave: one dispatcher for all targets and partitions of a run.

Lives on one event loop and is only touched from it. A running cell holds a *slot* (the plan's `concurrency`);
every call holds a *turn* at its endpoint (`pacing.Pacer`). A cell that waits for an endpoint (Retry-After,
rate limit, budget) gives its slot back, so the other targets run on.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sr_bench_assets.results.lanes import Cell, Lane
from sr_bench_assets.results.pacing import Pacer, Turn

BUDGET_POLL_S = 0.25


class NotDispatched(Exception):
    """No (further) call of this cell may start; `reason` is the stop reason or `circuit_open`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Slot:
    """Whether a cell holds one of the run's `concurrency` slots."""

    __slots__ = ("held",)

    def __init__(self) -> None:
        self.held = True


class _Waiting(NamedTuple):
    ready_at: float
    number: int
    turn: asyncio.Future[Turn]
    slot: Slot


class Endpoint:
    """The queues at one endpoint: calls of running cells come before cells that come back from a wait."""

    def __init__(self, key: str, pacer: Pacer) -> None:
        self.key = key
        self.pacer = pacer
        self.calls: list[_Waiting] = []
        self.returning: list[_Waiting] = []


class Dispatcher:
    """Starts cells round robin over the targets that may run, and hands out turns.

    `run_cell(cell, slot, turn)` is the coroutine of one cell; `turn` is for its first call at its target.
    `needs` names per benchmark the endpoints (beside the target) without which its cells cannot be finished.
    `over` is told of each cell whose coroutine ended, `dropped` of cells that will not start any more:
    (benchmark, target, count, reason).
    """

    def __init__(
        self,
        *,
        concurrency: int,
        endpoints: Mapping[str, Endpoint],
        lanes: Sequence[Lane],
        needs: Mapping[str, Sequence[str]],
        run_cell: Callable[[Cell, Slot, Turn], Coroutine[Any, Any, None]],
        over: Callable[[Cell], None],
        dropped: Callable[[str, str, int, str], None],
    ) -> None:
        self.concurrency = concurrency
        self.endpoints = endpoints
        self.stop_reason: str | None = None
        self.fault: BaseException | None = None
        """What broke the runner itself, if anything did."""
        self.running = 0
        self._lanes = list(lanes)
        self._needs = needs
        self._run_cell = run_cell
        self._over = over
        self._dropped = dropped
        self._tasks: set[asyncio.Task[None]] = set()
        # Cells that ended and wait for their commit hold no slot; a slow disk must not pile them up.
        self._max_tasks = 3 * concurrency + 64
        self._next_lane = 0
        self._numbers = itertools.count()
        self._timer: asyncio.TimerHandle | None = None
        self._wake_at = 0.0
        self._unsettled = 0
        self._budget_waiters: deque[asyncio.Future[None]] = deque()
        self._cancelled = False
        self._idle = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    # the life of a run

    async def run(self) -> None:
        """Until every cell ended or was dropped. The caller sees to the outcome of each."""
        self.pump()
        self._check_idle()
        await self._idle.wait()
        if self._timer:
            self._timer.cancel()

    def stop(self, reason: str, *, cancel_as: str | None = None) -> None:
        """Start nothing more. With `cancel_as` end running cells too: they are cancelled with that word as the
        failure and journal their end. Without it they may finish, though none of their further calls starts."""
        if self.stop_reason is None:
            self.stop_reason = reason
        for lane in self._lanes:
            self._drop_lane(lane, self.stop_reason)
        self._refuse_waiting(self.endpoints.values(), self.stop_reason)
        for waiter in self._budget_waiters:
            if not waiter.done():
                waiter.set_exception(NotDispatched(self.stop_reason))
        self._budget_waiters.clear()
        if cancel_as is not None and not self._cancelled:
            # Once: a cell that is journaling its end must not be cancelled again in the middle of that.
            self._cancelled = True
            for task in tuple(self._tasks):
                task.cancel(cancel_as)
        self._check_idle()

    # what a running cell asks for

    async def turn(self, endpoint: Endpoint, slot: Slot, *, ready_at: float = 0.0) -> Turn:
        """Wait for leave to make one call at `endpoint`, not before `ready_at` (loop time).

        With `ready_at` the cell's slot is given back for the wait; the slot is held on return.
        Raises `NotDispatched` when the run stops or the endpoint's circuit is open.
        """
        self._refuse_if_over(endpoint)
        if ready_at:
            self._release(slot)
        elif slot.held and not endpoint.calls and endpoint.pacer.may_send(self._loop.time()):
            return endpoint.pacer.take()
        future: asyncio.Future[Turn] = self._loop.create_future()
        queue = endpoint.calls if slot.held else endpoint.returning
        heapq.heappush(queue, _Waiting(ready_at, next(self._numbers), future, slot))
        self.pump()
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.exception() is None:
                endpoint.pacer.give_back()
                self.pump()
            raise

    def asking(self) -> None:
        """A call is about to ask the journal for its dispatch record and reservation."""
        self._unsettled += 1

    def granted(self, endpoint: Endpoint) -> None:
        """The journal granted the call; it leaves now."""
        endpoint.pacer.dispatched()
        if endpoint.calls or endpoint.returning:
            self.pump()

    def rate_limited(self, endpoint: Endpoint, until: float) -> None:
        """The target's own rate leaves no room before `until` (loop time); the turn is given back."""
        endpoint.pacer.rate_limited(until)
        self.settled()

    async def wait_for_budget(self, endpoint: Endpoint, *, hopeless: bool) -> None:
        """The budget cannot cover the call's reservation: give the turn back and wait until another call settles.

        Nothing new starts meanwhile; the slot is kept. `hopeless`: not even if all reservations came back; that
        stops the run (what is in flight finishes) and raises `NotDispatched`.
        """
        endpoint.pacer.give_back()
        self._unsettled -= 1
        if hopeless and self.stop_reason is None:
            self.stop("budget_exhausted")
        if self.stop_reason is not None:
            raise NotDispatched(self.stop_reason)
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._budget_waiters.append(waiter)
        if self._unsettled == 0:
            # What is reserved belongs to other processes, whose ends nobody tells us of.
            self._loop.call_later(BUDGET_POLL_S, self._wake_budget_waiter)
        await waiter

    def settled(self) -> None:
        """A call that asked has its end in the journal, or was not granted: its reservation is no more."""
        self._unsettled -= 1
        self._wake_budget_waiter()

    def replied(self, endpoint: Endpoint, turn: Turn) -> None:
        """A call is over other than by refusal: the next one may go."""
        endpoint.pacer.accepted(turn)
        if endpoint.calls or endpoint.returning:
            self.pump()

    def ended(self, endpoint: Endpoint, failure: str | None) -> None:
        """How a call that is over ended: counts for the circuit breaker."""
        if failure is None:
            endpoint.pacer.breaker.succeeded()
        else:
            self.failed(endpoint, failure)

    def failed(self, endpoint: Endpoint, failure: str) -> None:
        """Count a failure of the endpoint that is not the end of a call (its refusals became too many)."""
        if endpoint.pacer.breaker.failed(failure):
            self._open_circuit(endpoint)

    def refused(self, endpoint: Endpoint, turn: Turn, pause_s: float) -> None:
        """The endpoint refused the call and asked for a pause."""
        endpoint.pacer.refused(turn, self._loop.time(), pause_s)

    def give_back(self, endpoint: Endpoint) -> None:
        """A turn was not used after all: nothing was asked for."""
        endpoint.pacer.give_back()
        self.pump()

    def leave(self, slot: Slot) -> None:
        """A cell makes no further call: its slot is free for the next one."""
        self._release(slot)
        self.pump()

    # choosing

    def pump(self) -> None:
        """Hand out every turn and start every cell that may go now; sleep until the next one may."""
        now = self._loop.time()
        wake_at = 0.0
        for endpoint in self.endpoints.values():
            if endpoint.calls:
                self._serve(endpoint.calls, endpoint, now, needs_slot=False)
            if endpoint.returning:
                self._serve(endpoint.returning, endpoint, now, needs_slot=True)
                if endpoint.returning and endpoint.returning[0].ready_at > now:
                    wake_at = _earlier(wake_at, endpoint.returning[0].ready_at)
            if endpoint.pacer.paused_until > now:
                wake_at = _earlier(wake_at, endpoint.pacer.paused_until)
        if self.stop_reason is None and not self._budget_waiters:
            while self.running < self.concurrency and len(self._tasks) < self._max_tasks:
                lane = self._next_that_may_run(now)
                if lane is None:
                    break
                self._start(lane)
        if wake_at:
            self._sleep_until(wake_at)

    def _serve(self, queue: list[_Waiting], endpoint: Endpoint, now: float, *, needs_slot: bool) -> None:
        while queue and queue[0].ready_at <= now and endpoint.pacer.may_send(now):
            if needs_slot and self.running >= self.concurrency:
                return
            waiting = heapq.heappop(queue)
            if waiting.turn.done():  # cancelled while it waited
                continue
            if needs_slot:
                waiting.slot.held = True
                self.running += 1
            waiting.turn.set_result(endpoint.pacer.take())

    def _next_that_may_run(self, now: float) -> Lane | None:
        lanes = self._lanes
        for offset in range(len(lanes)):
            lane = lanes[(self._next_lane + offset) % len(lanes)]
            if lane.benchmark is None:
                continue
            endpoint = self.endpoints[lane.target_id]
            if endpoint.returning and endpoint.returning[0].ready_at <= now:
                continue  # a cell that was refused goes before a new one
            if endpoint.pacer.may_send(now):
                self._next_lane = (self._next_lane + offset + 1) % len(lanes)
                return lane
        return None

    def _start(self, lane: Lane) -> None:
        cell = lane.pop()
        turn = self.endpoints[lane.target_id].pacer.take()
        self.running += 1
        slot = Slot()
        task = self._loop.create_task(self._run_cell(cell, slot, turn))
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._finished(done, cell, slot))

    def _wake_budget_waiter(self) -> None:
        while self._budget_waiters:
            waiter = self._budget_waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                break

    def _finished(self, task: asyncio.Task[None], cell: Cell, slot: Slot) -> None:
        self._tasks.discard(task)
        self._release(slot)
        if not task.cancelled() and (error := task.exception()) is not None and self.fault is None:
            # A cell's own failures are results; what arrives here is a fault of the runner or its disk.
            self.fault = error
            self.stop("runner_error", cancel_as="cancelled")
        self._over(cell)
        self.pump()
        self._check_idle()

    def _release(self, slot: Slot) -> None:
        if slot.held:
            slot.held = False
            self.running -= 1

    def _sleep_until(self, when: float) -> None:
        if self._loop.time() < self._wake_at <= when:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._wake_at = when
        self._timer = self._loop.call_at(when + 0.001, self.pump)

    def _check_idle(self) -> None:
        if not self._tasks and all(lane.benchmark is None for lane in self._lanes):
            self._idle.set()

    # closing

    def _refuse_if_over(self, endpoint: Endpoint) -> None:
        if self.stop_reason is not None:
            raise NotDispatched(self.stop_reason)
        if endpoint.pacer.breaker.open:
            raise NotDispatched("circuit_open")

    def _open_circuit(self, endpoint: Endpoint) -> None:
        self._refuse_waiting([endpoint], "circuit_open")
        for lane in self._lanes:
            if lane.target_id == endpoint.key:
                self._drop_lane(lane, "circuit_open")
            else:
                for benchmark, needed in self._needs.items():
                    if endpoint.key in needed:
                        self._drop(lane, benchmark, "circuit_open")

    def _refuse_waiting(self, endpoints: Iterable[Endpoint], reason: str) -> None:
        for endpoint in endpoints:
            for queue in (endpoint.calls, endpoint.returning):
                for waiting in queue:
                    if not waiting.turn.done():
                        waiting.turn.set_exception(NotDispatched(reason))
                queue.clear()

    def _drop_lane(self, lane: Lane, reason: str) -> None:
        while (benchmark := lane.benchmark) is not None:
            self._drop(lane, benchmark, reason)

    def _drop(self, lane: Lane, benchmark: str, reason: str) -> None:
        if count := lane.drop(benchmark):
            self._dropped(benchmark, lane.target_id, count, reason)


def _earlier(known: float, candidate: float) -> float:
    return candidate if not known or candidate < known else known
