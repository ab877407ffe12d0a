"""The dispatcher with real event loops: slots, turns, fairness, waits, circuits and stops."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sr_bench_assets.results.dispatcher import Dispatcher, Endpoint, NotDispatched, Slot
from sr_bench_assets.results.lanes import Cell, Lane
from sr_bench_assets.results.pacing import Pacer, Turn

Body = Callable[["Bench", Cell, Slot, Turn], Awaitable[None]]


class Bench:
    """A dispatcher over `cells` (target → number of cases of benchmark `b`) whose cells run `body`."""

    def __init__(
        self,
        cells: dict[str, int],
        body: Body,
        *,
        concurrency: int = 4,
        ceilings: dict[str, int] | None = None,
        max_failures: int = 10,
        needs: dict[str, Sequence[str]] | None = None,
        extra: Sequence[str] = (),
    ) -> None:
        self.body = body
        self.in_flight: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.started: list[Cell] = []
        self.over: list[Cell] = []
        self.dropped: list[tuple[str, str, int, str]] = []
        self.endpoints = {
            name: Endpoint(
                name,
                Pacer(ceiling=(ceilings or {}).get(name, concurrency), max_consecutive_failures=max_failures),
            )
            for name in [*cells, *extra]
        }
        self.dispatcher = Dispatcher(
            concurrency=concurrency,
            endpoints=self.endpoints,
            lanes=[Lane(name, [("b", range(count))]) for name, count in cells.items()],
            needs=needs or {},
            run_cell=self._cell,
            over=self.over.append,
            dropped=lambda *what: self.dropped.append(what),
        )

    async def _cell(self, cell: Cell, slot: Slot, turn: Turn) -> None:
        self.started.append(cell)
        await self.body(self, cell, slot, turn)

    async def call(
        self, target: str, turn: Turn, *, seconds: float = 0.001, failure: str | None = None
    ) -> None:
        endpoint = self.endpoints[target]
        self.dispatcher.asking()
        self.dispatcher.granted(endpoint)
        self.in_flight[target] += 1
        self.in_flight["*"] += 1
        for key in (target, "*"):
            self.most[key] = max(self.most[key], self.in_flight[key])
        try:
            await asyncio.sleep(seconds)
        finally:
            self.in_flight[target] -= 1
            self.in_flight["*"] -= 1
        self.dispatcher.replied(endpoint, turn)
        self.dispatcher.ended(endpoint, failure)
        self.dispatcher.settled()


async def one_call(bench: Bench, cell: Cell, slot: Slot, turn: Turn) -> None:
    await bench.call(cell.target_id, turn)
    bench.dispatcher.leave(slot)


def run(coroutine: Awaitable[Any]) -> Any:
    async def bounded() -> Any:
        return await asyncio.wait_for(coroutine, 20)

    return asyncio.run(bounded())


@settings(max_examples=25, deadline=None)
@given(
    st.dictionaries(st.sampled_from("xyz"), st.integers(1, 30), min_size=1),
    st.integers(1, 8),
    st.integers(1, 8),
)
def test_every_cell_runs_once_within_all_bounds(
    cells: dict[str, int], concurrency: int, ceiling: int
) -> None:
    async def scenario() -> Bench:
        bench = Bench(cells, one_call, concurrency=concurrency, ceilings=dict.fromkeys(cells, ceiling))
        await bench.dispatcher.run()
        return bench

    bench = run(scenario())
    assert sorted(bench.over) == sorted(Cell("b", n, t) for t, count in cells.items() for n in range(count))
    assert bench.most["*"] <= concurrency
    assert all(bench.most[target] <= ceiling for target in cells)
    assert bench.dispatcher.running == 0
    assert all(endpoint.pacer.in_flight == 0 for endpoint in bench.endpoints.values())


def test_targets_take_turns() -> None:
    async def scenario() -> Bench:
        bench = Bench({"x": 6, "y": 6}, one_call, concurrency=2)
        await bench.dispatcher.run()
        return bench

    order = [cell.target_id for cell in run(scenario()).started]
    assert order[:2] in (["x", "y"], ["y", "x"])
    assert abs(Counter(order[:6])["x"] - 3) <= 1


def test_a_slow_target_does_not_hold_up_the_others() -> None:
    async def body(bench: Bench, cell: Cell, slot: Slot, turn: Turn) -> None:
        await bench.call(cell.target_id, turn, seconds=0.3 if cell.target_id == "slow" else 0.001)

    async def scenario() -> Bench:
        bench = Bench({"slow": 2, "fast": 40}, body, concurrency=2, ceilings={"slow": 1})
        await bench.dispatcher.run()
        return bench

    over = [cell.target_id for cell in run(scenario()).over]
    assert over.index("slow") >= 38


def test_a_refused_cell_waits_without_its_slot() -> None:
    seen: dict[str, float] = {}

    async def body(bench: Bench, cell: Cell, slot: Slot, turn: Turn) -> None:
        loop = asyncio.get_running_loop()
        endpoint = bench.endpoints[cell.target_id]
        if cell.target_id == "limited":
            bench.dispatcher.asking()
            bench.dispatcher.granted(endpoint)
            bench.dispatcher.refused(endpoint, turn, 0.2)
            bench.dispatcher.settled()
            started = loop.time()
            turn = await bench.dispatcher.turn(endpoint, slot, ready_at=loop.time() + 0.2)
            seen["waited"] = loop.time() - started
            assert slot.held
        await bench.call(cell.target_id, turn)
        seen[cell.target_id] = loop.time()

    async def scenario() -> Bench:
        bench = Bench({"limited": 1, "free": 20}, body, concurrency=1)
        await bench.dispatcher.run()
        return bench

    bench = run(scenario())
    assert 0.2 <= seen["waited"] < 1
    assert seen["free"] < seen["limited"]
    assert bench.most["*"] == 1


def test_an_open_circuit_leaves_the_rest_undispatched() -> None:
    async def body(bench: Bench, cell: Cell, slot: Slot, turn: Turn) -> None:
        await bench.call(cell.target_id, turn, failure="http_error" if cell.target_id == "bad" else None)

    async def scenario() -> Bench:
        bench = Bench({"bad": 50, "good": 50}, body, concurrency=2, max_failures=5)
        await bench.dispatcher.run()
        return bench

    bench = run(scenario())
    count = Counter(cell.target_id for cell in bench.started)
    assert count["good"] == 50
    assert 5 <= count["bad"] <= 6
    assert bench.dropped == [("b", "bad", 50 - count["bad"], "circuit_open")]
    assert bench.dispatcher.stop_reason is None


def test_a_broken_judge_stops_what_needs_it() -> None:
    reasons: set[str] = set()

    async def body(bench: Bench, cell: Cell, slot: Slot, turn: Turn) -> None:
        await bench.call(cell.target_id, turn)
        judge = bench.endpoints["judge"]
        try:
            await bench.call("judge", await bench.dispatcher.turn(judge, slot), failure="http_error")
        except NotDispatched as stop:
            reasons.add(stop.reason)

    async def scenario() -> Bench:
        bench = Bench(
            {"x": 30, "y": 30}, body, concurrency=3, max_failures=4, needs={"b": ["judge"]}, extra=["judge"]
        )
        await bench.dispatcher.run()
        return bench

    bench = run(scenario())
    assert len(bench.started) < 10
    assert reasons <= {"circuit_open"}
    assert {reason for *_, reason in bench.dropped} == {"circuit_open"}
    assert sum(count for _, _, count, _ in bench.dropped) == 60 - len(bench.started)


def test_the_budget_is_tried_again_while_calls_are_in_flight_and_then_ends_the_run() -> None:
    budget = {"left": 10}
    in_flight = {"n": 0}

    async def body(bench: Bench, cell: Cell, slot: Slot, turn: Turn) -> None:
        endpoint = bench.endpoints[cell.target_id]
        while True:
            bench.dispatcher.asking()
            if budget["left"] >= 4:
                break
            await bench.dispatcher.wait_for_budget(endpoint, hopeless=budget["left"] + 4 * in_flight["n"] < 4)
            turn = await bench.dispatcher.turn(endpoint, slot)
        budget["left"] -= 4
        in_flight["n"] += 1
        bench.dispatcher.granted(endpoint)
        await asyncio.sleep(0.001)
        bench.dispatcher.replied(endpoint, turn)
        bench.dispatcher.ended(endpoint, None)
        budget["left"] += 3
        in_flight["n"] -= 1
        bench.dispatcher.settled()
        bench.over.append(cell)

    async def scenario() -> Bench:
        bench = Bench({"x": 30}, body, concurrency=8)
        bench.over = []
        await bench.dispatcher.run()
        return bench

    bench = run(scenario())
    assert bench.dispatcher.stop_reason == "budget_exhausted"
    assert budget["left"] == 3  # seven calls cost 1 each; the eighth reservation of 4 does not fit
    assert len(bench.over) >= 7


def test_the_own_rate_limit_is_probed_one_call_at_a_time() -> None:
    asked: list[float] = []
    free_at = {"at": 0.0}

    async def body(bench: Bench, cell: Cell, slot: Slot, turn: Turn) -> None:
        loop = asyncio.get_running_loop()
        endpoint = bench.endpoints[cell.target_id]
        while True:
            bench.dispatcher.asking()
            asked.append(loop.time())
            await asyncio.sleep(0)
            if loop.time() >= free_at["at"]:
                free_at["at"] = loop.time() + 0.02
                break
            bench.dispatcher.rate_limited(endpoint, free_at["at"])
            turn = await bench.dispatcher.turn(endpoint, slot, ready_at=free_at["at"])
        bench.dispatcher.granted(endpoint)
        bench.dispatcher.replied(endpoint, turn)
        bench.dispatcher.ended(endpoint, None)
        bench.dispatcher.settled()

    async def scenario() -> Bench:
        bench = Bench({"x": 20}, body, concurrency=16)
        await bench.dispatcher.run()
        return bench

    bench = run(scenario())
    assert len(bench.over) == 20
    assert len(asked) < 16 + 20 * 4


@pytest.mark.parametrize("cancel", [True, False])
def test_a_stop_ends_or_lets_finish_what_runs(cancel: bool) -> None:
    ends: Counter[str] = Counter()

    async def body(bench: Bench, cell: Cell, slot: Slot, turn: Turn) -> None:
        try:
            await bench.call(cell.target_id, turn, seconds=0.3)
            ends["finished"] += 1
            await bench.dispatcher.turn(bench.endpoints[cell.target_id], slot)
        except asyncio.CancelledError:
            ends["cancelled"] += 1
            raise
        except NotDispatched as stop:
            ends[f"no further call: {stop.reason}"] += 1

    async def scenario() -> tuple[Bench, float]:
        loop = asyncio.get_running_loop()
        bench = Bench({"x": 20}, body, concurrency=4)
        loop.call_later(
            0.05, lambda: bench.dispatcher.stop("cancelled", cancel_as="cancelled" if cancel else None)
        )
        started = loop.time()
        await bench.dispatcher.run()
        return bench, loop.time() - started

    bench, seconds = run(scenario())
    assert bench.dropped == [("b", "x", 16, "cancelled")]
    assert len(bench.over) == 4
    if cancel:
        assert ends == {"cancelled": 4}
        assert seconds < 0.25
    else:
        assert ends == {"finished": 4, "no further call: cancelled": 4}


def test_a_fault_of_the_runner_stops_the_run() -> None:
    async def body(bench: Bench, cell: Cell, slot: Slot, turn: Turn) -> None:
        raise OSError("no space left on device")

    async def scenario() -> Bench:
        bench = Bench({"x": 20}, body, concurrency=2)
        await bench.dispatcher.run()
        return bench

    bench = run(scenario())
    assert isinstance(bench.dispatcher.fault, OSError)
    assert bench.dispatcher.stop_reason == "runner_error"
    assert len(bench.started) <= 3


def test_nothing_to_do_ends_at_once() -> None:
    async def scenario() -> None:
        await Bench({"x": 0}, one_call).dispatcher.run()

    run(scenario())
