"""A process that stood still (a laptop that slept, a debugger) reads what arrived before it judges anything late."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from resources.gateway import connection as client_side
from resources.gateway.client import GatewayClient
from resources.gateway.timer import Timer
from tests.resources.gateway.calling import ANSWER, DONE, event, limits, request, run, send_once, target
from tests.servers.scripted import LAST_CHUNK, STREAM_HEAD, Connection, ScriptedServer, chunk, whole


@pytest.mark.parametrize("limit", ["idle_timeout_s", "total_timeout_s"])
def test_a_reply_that_came_while_the_process_slept_is_no_stall(limit: str) -> None:
    async def script(connection: Connection) -> None:
        await connection.send(STREAM_HEAD + chunk(ANSWER[:50]))
        await asyncio.sleep(0.05)
        # The server lives in the same loop: its bytes are in the socket's buffer before the loop stands still.
        await connection.send(chunk(ANSWER[50:]) + LAST_CHUNK)
        time.sleep(1.2)  # noqa: ASYNC251 - the point of it

    async def work() -> None:
        async with ScriptedServer(script) as server:
            outcome = await send_once(server.base_url, bounds=limits(**{"idle_timeout_s": 2, limit: 0.4}))
            assert (outcome.kind, outcome.reply.final) == ("completed", "The answer is (B)")

    run(work())


def test_silence_is_still_told_after_a_standstill() -> None:
    async def script(connection: Connection) -> None:
        await connection.send(STREAM_HEAD + chunk(ANSWER[:50]))
        await asyncio.sleep(0.05)
        time.sleep(1.2)  # noqa: ASYNC251 - the point of it
        await connection.gone()

    async def work() -> None:
        async with ScriptedServer(script) as server:
            outcome = await send_once(server.base_url, bounds=limits(idle_timeout_s=0.4))
            assert outcome.reply.failure == "stalled"
            assert outcome.latency_s < 2.5

    run(work())


def test_a_timer_fires_once_and_not_after_it_was_cancelled() -> None:
    async def work() -> None:
        fired: list[str] = []
        loop = asyncio.get_running_loop()
        Timer(loop, 0.05, lambda: fired.append("kept"))
        late = Timer(loop, 0.05, lambda: fired.append("cancelled"))
        time.sleep(0.7)  # noqa: ASYNC251 - both are late now, and look again
        await asyncio.sleep(0.05)
        assert fired == []
        late.cancel()
        await asyncio.sleep(0.2)
        assert fired == ["kept"]

    run(work())


def test_an_unread_reply_on_a_kept_connection_is_not_taken_for_the_next() -> None:
    late: list[asyncio.Task[None]] = []

    async def script(connection: Connection) -> None:
        await connection.send(whole(200, ANSWER, "Content-Type: text/event-stream"))
        late.append(asyncio.create_task(_say_more(connection)))

    async def _say_more(connection: Connection) -> None:
        await asyncio.sleep(0.02)
        connection.writer.write(whole(200, event("stale") + DONE, "Content-Type: text/event-stream"))

    async def work() -> None:
        async with ScriptedServer(script) as server, GatewayClient() as client:
            to = target(server.base_url)
            for _ in range(3):
                outcome = await client.send(request(to), api_key=None, limits=limits(), target=to)
                assert outcome.reply.final == "The answer is (B)"
                await late[-1]  # written, and not read yet by this loop
            assert server.connections == 3

    run(work())


def test_the_last_bytes_count_that_come_as_the_call_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[client_side.Connection] = []
    exchange = client_side.Connection.exchange

    def noted(self: client_side.Connection, *arguments: Any) -> None:
        used.append(self)
        exchange(self, *arguments)

    monkeypatch.setattr(client_side.Connection, "exchange", noted)

    async def script(connection: Connection) -> None:
        await connection.send(STREAM_HEAD + chunk(ANSWER[:50]))
        await connection.gone()

    async def work() -> None:
        async with ScriptedServer(script) as server, GatewayClient() as client:
            to = target(server.base_url)
            told: list[str] = []
            sending = asyncio.create_task(
                client.send(request(to), api_key=None, limits=limits(), target=to, on_late_cancel=told.append)
            )
            await asyncio.sleep(0.1)
            sending.cancel("case_timeout")
            used[0].data_received(chunk(ANSWER[50:]) + LAST_CHUNK)  # read in the same turn of the loop
            outcome = await sending
            assert (outcome.kind, outcome.reply.final) == ("completed", "The answer is (B)")
            assert told == ["case_timeout"]

    run(work())
