"""A stream cut at every byte of the wire: what arrived is kept, nothing is sent twice, no cut looks complete."""

from __future__ import annotations

from typing import Any

import pytest

from tests.resources.gateway.calling import ANSWER, DONE, checked_evidence, event, run, send_once
from tests.servers.scripted import LAST_CHUNK, STREAM_HEAD, Connection, ScriptedServer, chunk

SHORT = event("B", finish="stop") + DONE
WIRE = STREAM_HEAD + chunk(SHORT[:40]) + chunk(SHORT[40:]) + LAST_CHUNK


def _body_in(wire: bytes) -> bytes:
    """The bytes of the body that a prefix of the wire holds."""
    rest = wire[len(STREAM_HEAD) :]
    body = b""
    while b"\r\n" in rest:
        size_line, _, rest = rest.partition(b"\r\n")
        size = int(size_line, 16)
        body += rest[:size]
        rest = rest[size + 2 :]
    return body


@pytest.mark.parametrize("how", ["close", "reset"])
def test_cut_at_every_byte(how: str) -> None:
    cut = 0

    async def script(connection: Connection) -> None:
        await connection.send(WIRE[:cut])
        if how == "close":
            connection.writer.close()
        else:
            connection.reset()

    async def work() -> None:
        nonlocal cut
        async with ScriptedServer(script) as server:
            for number, cut in enumerate(range(len(WIRE)), start=1):
                outcome = await send_once(server.base_url)
                assert len(server.requests) == number
                body = checked_evidence(outcome).body
                arrived = _body_in(WIRE[:cut])
                # A reset may destroy what the kernel had not handed over yet; an orderly close may not.
                assert arrived.startswith(body)
                if how == "close" and outcome.http_status is not None:
                    assert body == arrived
                if outcome.kind == "completed":
                    assert b"[DONE]" in body
                elif cut < len(STREAM_HEAD):
                    assert outcome.reply.failure == "connection_lost"
                else:
                    assert outcome.reply.failure in ("stream_truncated", "connection_lost")
                assert (how == "reset") or (outcome.kind == "completed") == (b"[DONE]" in arrived)

    run(work())


@pytest.mark.parametrize("size", [1, 2, 7, 100])
def test_the_size_of_the_pieces_changes_nothing(size: int) -> None:
    async def script(connection: Connection) -> None:
        await connection.send(STREAM_HEAD)
        for at in range(0, len(ANSWER), size):
            await connection.send(chunk(ANSWER[at : at + size]))
        await connection.send(LAST_CHUNK)

    async def work() -> None:
        async with ScriptedServer(script) as server:
            outcome = await send_once(server.base_url)
            assert outcome.kind == "completed"
            assert outcome.reply.text == "The answer is (B)"
            assert checked_evidence(outcome).body == ANSWER

    run(work())


@pytest.mark.parametrize(
    "answer",
    [b"\x16\x03\x01 not http at all\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", b"\r\n"],
)
def test_what_is_no_http_loses_the_call_once(answer: bytes) -> None:
    async def script(connection: Connection) -> None:
        await connection.send(answer)
        connection.writer.close()

    async def work() -> None:
        async with ScriptedServer(script) as server:
            outcome: Any = await send_once(server.base_url)
            assert outcome.reply.failure == "connection_lost"
            assert len(server.requests) == 1

    run(work())
