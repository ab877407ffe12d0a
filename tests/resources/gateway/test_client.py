"""The client against a real loopback server: replies, refusals, errors, connections, secrets."""

from __future__ import annotations

import asyncio
import json
import socket

import pytest

from resources.gateway.client import GatewayClient
from tests.resources.gateway.calling import (
    ANSWER,
    DONE,
    USAGE,
    checked_evidence,
    event,
    limits,
    request,
    run,
    send_once,
    target,
)
from tests.servers.scripted import LAST_CHUNK, STREAM_HEAD, Connection, ScriptedServer, chunk, whole

KEY = "sk-test-0123456789"


async def _answer(connection: Connection) -> None:
    await connection.stream(ANSWER)


def test_a_streamed_reply_with_its_evidence() -> None:
    async def script(connection: Connection) -> None:
        await connection.send(STREAM_HEAD + chunk(event("The answer ")))
        await asyncio.sleep(0.05)
        await connection.send(chunk(event("is (B)") + event(finish="stop") + USAGE + DONE) + LAST_CHUNK)

    async def work() -> None:
        async with ScriptedServer(script) as server:
            outcome = await send_once(server.base_url, api_key=KEY)
            assert outcome.kind == "completed"
            assert outcome.reply.final == "The answer is (B)"
            assert outcome.reply.usage.output_tokens == 4
            assert outcome.ttft_s is not None
            assert 0 < outcome.ttft_s < outcome.latency_s
            assert not outcome.never_sent
            evidence = checked_evidence(outcome)
            assert evidence.body == ANSWER
            assert len(evidence.read_sizes) == 2
            head, body = server.requests[0]
            assert f"Authorization: Bearer {KEY}".encode() in head
            assert KEY.encode() not in body
            assert json.loads(body)["stream_options"] == {"include_usage": True}
            assert len(server.requests) == 1

    run(work())


def test_a_reply_that_is_not_streamed_may_take_longer_than_the_idle_limit() -> None:
    async def script(connection: Connection) -> None:
        await asyncio.sleep(0.4)
        reply = {
            "object": "chat.completion",
            "model": "m-1",
            "choices": [{"index": 0, "message": {"content": "B"}, "finish_reason": "stop"}],
        }
        await connection.send(whole(200, json.dumps(reply).encode(), "Content-Type: application/json"))

    async def work() -> None:
        async with ScriptedServer(script) as server:
            outcome = await send_once(server.base_url, stream=False, bounds=limits(idle_timeout_s=0.15))
            assert (outcome.kind, outcome.reply.final) == ("completed", "B")
            assert outcome.ttft_s is None

    run(work())


@pytest.mark.parametrize(
    ("status", "headers", "kind", "retry_after"),
    [
        (429, ["Retry-After: 2"], "refused", 2.0),
        (429, [], "refused", None),
        (429, ["Retry-After: soon"], "refused", None),
        (503, ["Retry-After: 0.5"], "refused", 0.5),
        (503, [], "failed", None),
        (500, ["Retry-After: 1"], "failed", 1.0),
        (404, [], "failed", None),
        (302, ["Location: /v1/elsewhere"], "failed", None),
    ],
)
def test_http_errors_are_told_apart_and_never_repeated(
    status: int, headers: list[str], kind: str, retry_after: float | None
) -> None:
    async def script(connection: Connection) -> None:
        body = b'{"error": {"message": "not now"}}'
        await connection.send(whole(status, body, "Content-Type: application/json", *headers))

    async def work() -> None:
        async with ScriptedServer(script) as server:
            outcome = await send_once(server.base_url)
            assert outcome.kind == kind
            assert outcome.reply.failure == "http_error"
            assert outcome.http_status == status
            assert outcome.retry_after_s == retry_after
            assert outcome.reply.error_message == "not now"
            assert len(server.requests) == 1

    run(work())


def test_a_refused_connection_was_never_sent() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    outcome = run(send_once(f"http://127.0.0.1:{port}/v1"))
    assert (outcome.kind, outcome.reply.failure) == ("failed", "connect_error")
    assert outcome.never_sent
    assert outcome.http_status is None


def test_a_handshake_that_hangs_ends_at_the_connect_limit() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async def work() -> None:
        server = await asyncio.start_server(silent, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        outcome = await send_once(f"https://127.0.0.1:{port}/v1", bounds=limits(connect_timeout_s=0.2))
        server.close()
        assert outcome.reply.failure == "connect_error"
        assert outcome.never_sent
        assert outcome.latency_s < 1.5

    run(work())


def test_connections_are_used_again_even_when_the_body_ends_after_done() -> None:
    async def script(connection: Connection) -> None:
        await connection.stream(ANSWER, end=False)
        await asyncio.sleep(0.02)
        await connection.send(LAST_CHUNK)

    async def work() -> None:
        async with ScriptedServer(script) as server, GatewayClient() as client:
            to = target(server.base_url)
            for _ in range(5):
                outcome = await client.send(request(to), api_key=None, limits=limits(), target=to)
                assert outcome.kind == "completed"
            assert (server.connections, len(server.requests)) == (1, 5)

    run(work())


def test_a_body_that_never_ends_after_done_does_no_harm() -> None:
    async def script(connection: Connection) -> None:
        await connection.stream(ANSWER, end=False)
        await connection.gone()

    async def work() -> None:
        async with ScriptedServer(script) as server:
            outcome = await send_once(server.base_url)
            assert outcome.kind == "completed"
            assert outcome.latency_s < 0.09

    run(work())


def test_a_kept_connection_that_breaks_does_not_repeat_the_request() -> None:
    answered = 0

    async def script(connection: Connection) -> None:
        nonlocal answered
        if answered:
            connection.writer.close()
            return
        answered += 1
        await connection.stream(ANSWER)

    async def work() -> None:
        async with ScriptedServer(script) as server, GatewayClient() as client:
            to = target(server.base_url)
            first = await client.send(request(to), api_key=None, limits=limits(), target=to)
            second = await client.send(request(to), api_key=None, limits=limits(), target=to)
            assert first.kind == "completed"
            assert (second.kind, second.reply.failure) == ("failed", "connection_lost")
            assert not second.never_sent
            assert (server.connections, len(server.requests)) == (1, 2)

    run(work())


def test_a_connection_that_the_server_closed_while_idle_is_not_used() -> None:
    async def script(connection: Connection) -> None:
        await connection.stream(ANSWER)
        connection.writer.close()

    async def work() -> None:
        async with ScriptedServer(script) as server, GatewayClient() as client:
            to = target(server.base_url)
            for _ in range(3):
                outcome = await client.send(request(to), api_key=None, limits=limits(), target=to)
                assert outcome.kind == "completed"
                await asyncio.sleep(0.03)
            assert (server.connections, len(server.requests)) == (3, 3)

    run(work())


def test_proxies_of_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")

    async def work() -> None:
        async with ScriptedServer(_answer) as server:
            assert (await send_once(server.base_url)).kind == "completed"

    run(work())


def test_many_calls_at_once_keep_their_replies_apart() -> None:
    async def script(connection: Connection) -> None:
        await asyncio.sleep(0.02)
        model = json.loads(connection.body)["model"]
        await connection.stream(event(f"I am {model}") + event(finish="stop") + DONE)

    async def work() -> None:
        async with ScriptedServer(script) as server, GatewayClient() as client:
            targets = [target(server.base_url, model=f"m-{number}") for number in range(200)]
            outcomes = await asyncio.gather(
                *(client.send(request(to), api_key=None, limits=limits(), target=to) for to in targets)
            )
            assert [outcome.reply.final for outcome in outcomes] == [f"I am {to.model}" for to in targets]
            assert len(server.requests) == 200

    run(work())


@pytest.mark.parametrize("where", ["error", "text", "cut", "header"])
def test_a_key_that_the_server_echoes_is_kept_nowhere(where: str) -> None:
    async def script(connection: Connection) -> None:
        if where == "error":
            await connection.send(whole(401, f"bad key {KEY}".encode()))
        elif where == "header":
            await connection.send(whole(401, b"no", f"x-request-id: {KEY}"))
        elif where == "text":
            await connection.stream(event(f"your key is {KEY}") + event(finish="stop") + DONE)
        else:
            body = event(f"your key is {KEY}") + event(finish="stop") + DONE
            middle = body.index(KEY.encode()) + 5
            await connection.send(STREAM_HEAD + chunk(body[:middle]))
            await asyncio.sleep(0.03)
            await connection.send(chunk(body[middle:]) + LAST_CHUNK)

    async def work() -> None:
        async with ScriptedServer(script) as server:
            outcome = await send_once(server.base_url, api_key=KEY)
            evidence = checked_evidence(outcome)
            assert evidence.redacted
            for text in (repr(evidence), repr(evidence.body), repr(outcome), repr(outcome.reply)):
                assert KEY not in text

    run(work())


def test_the_lab_says_that_it_is_the_lab() -> None:
    async def script(connection: Connection) -> None:
        await connection.send(whole(200, ANSWER, "Content-Type: text/event-stream", "X-SR-Bench-Lab: 1"))

    async def work() -> None:
        async with ScriptedServer(script) as server:
            assert (await send_once(server.base_url)).lab
        async with ScriptedServer(_answer) as server:
            assert not (await send_once(server.base_url)).lab

    run(work())
