"""One piece of heavy work a turn of the loop."""

from __future__ import annotations

import asyncio
import itertools

from sr_bench_assets.results.turnstile import Turnstile


def test_others_run_between_two_pieces_of_work() -> None:
    seen: list[str] = []

    async def heavy(turnstile: Turnstile, name: str) -> None:
        await turnstile.through()
        seen.append(name)

    async def ticking() -> None:
        for _ in range(20):
            seen.append("tick")
            await asyncio.sleep(0)

    async def scenario() -> None:
        turnstile = Turnstile()
        await asyncio.gather(*(heavy(turnstile, f"heavy {number}") for number in range(5)), ticking())

    asyncio.run(scenario())
    work = [index for index, what in enumerate(seen) if what != "tick"]
    assert [seen[index] for index in work] == [f"heavy {number}" for number in range(5)]
    assert all(after - before > 1 for before, after in itertools.pairwise(work))


def test_a_cancelled_waiter_holds_up_nobody() -> None:
    async def scenario() -> None:
        turnstile = Turnstile()
        given_up, kept = turnstile.through(), turnstile.through()
        given_up.cancel()
        await asyncio.wait_for(kept, 1)
        await asyncio.wait_for(turnstile.through(), 1)

    asyncio.run(scenario())
