"""Every limit of a call has an outcome of its own name, and stops the server's work."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from resources.gateway.client import GatewayClient
from resources.gateway.outcome import CallOutcome
from tests.resources.gateway.calling import (
    ANSWER,
    DONE,
    checked_evidence,
    event,
    limits,
    request,
    run,
    send_once,
    target,
)
from tests.servers.scripted import STREAM_HEAD, Connection, ScriptedServer, chunk, whole


def _stalls_after(data: bytes) -> Any:
    async def script(connection: Connection) -> None:
        if data:
            await connection.send(data)
        await connection.gone()

    return script


@pytest.mark.parametrize(
    "sent", [b"", STREAM_HEAD, STREAM_HEAD + chunk(event("half ")), STREAM_HEAD + chunk(event("half ")[:20])]
)
def test_a_silent_stream_is_stalled(sent: bytes) -> None:
    async def work() -> None:
        async with ScriptedServer(_stalls_after(sent)) as server:
            outcome = await send_once(server.base_url, bounds=limits(idle_timeout_s=0.2))
            assert (outcome.kind, outcome.reply.failure) == ("failed", "stalled")
            assert 0.15 < outcome.latency_s < 1

    run(work())


def test_a_slow_but_steady_stream_is_not_stalled_and_ends_at_the_absolute_limit() -> None:
    async def script(connection: Connection) -> None:
        await connection.send(STREAM_HEAD)
        while True:
            await connection.send(chunk(event("x")))
            await asyncio.sleep(0.05)

    async def work() -> None:
        async with ScriptedServer(script) as server:
            bounds = limits(idle_timeout_s=0.2, total_timeout_s=0.6)
            outcome = await send_once(server.base_url, bounds=bounds)
            assert outcome.reply.failure == "total_timeout"
            assert 0.55 < outcome.latency_s < 1.2
            assert len(outcome.reply.text) > 5

    run(work())


def test_a_reply_that_is_not_streamed_ends_at_the_absolute_limit() -> None:
    async def work() -> None:
        async with ScriptedServer(_stalls_after(b"")) as server:
            bounds = limits(idle_timeout_s=0.1, total_timeout_s=0.4)
            outcome = await send_once(server.base_url, stream=False, bounds=bounds)
            assert outcome.reply.failure == "total_timeout"
            assert outcome.latency_s > 0.35

    run(work())


def _endless(piece: bytes, gone: asyncio.Event) -> Any:
    async def script(connection: Connection) -> None:
        await connection.send(STREAM_HEAD)
        try:
            while True:
                await connection.send(chunk(piece))
                await asyncio.sleep(0)
        except ConnectionError:
            gone.set()
            raise

    return script


@pytest.mark.parametrize(
    ("failure", "piece", "bounds"),
    [
        ("output_chars_limit", event("never the same " + "abcdefghijklmnop" * 3), {"max_output_chars": 2000}),
        ("log_bytes_limit", b": " + b"k" * 500 + b"\n\n", {"max_log_bytes": 20000}),
        ("repetition", event("again and again "), {"repetition_window": 16, "repetition_limit": 5}),
        (
            "repetition",
            b'data: {"choices":[{"index":0,"delta":{"reasoning":"hm, hm, "}}]}\n\n',
            {"repetition_window": 8, "repetition_limit": 9},
        ),
    ],
)
def test_endless_output_is_stopped(failure: str, piece: bytes, bounds: dict[str, int]) -> None:
    async def work() -> None:
        gone = asyncio.Event()
        async with ScriptedServer(_endless(piece, gone)) as server:
            outcome = await send_once(server.base_url, bounds=limits(**bounds))
            assert (outcome.kind, outcome.reply.failure) == ("failed", failure)
            evidence = checked_evidence(outcome)
            assert len(evidence.body) <= 8388608
            if failure == "log_bytes_limit":
                assert len(evidence.body) == 20000
            await asyncio.wait_for(gone.wait(), 5)

    run(work())


@pytest.mark.parametrize("streamed", [True, False])
def test_more_tokens_than_the_plan_allows(streamed: bool) -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 50, "total_tokens": 55}
    choice = {"index": 0, "message": {"content": "B"}, "finish_reason": "stop"}

    async def script(connection: Connection) -> None:
        if streamed:
            await connection.stream(event("B", finish="stop", usage=usage) + DONE)
        else:
            body = json.dumps({"object": "chat.completion", "choices": [choice], "usage": usage}).encode()
            await connection.send(whole(200, body, "Content-Type: application/json"))

    async def work() -> None:
        async with ScriptedServer(script) as server:
            to = target(server.base_url)
            async with GatewayClient() as client:
                outcome = await client.send(
                    request(to, stream=streamed),
                    api_key=None,
                    limits=limits(max_output_tokens=49),
                    target=to,
                )
            checked_evidence(outcome)
            assert outcome.reply.failure == "output_tokens_limit"
            assert outcome.reply.usage.output_tokens == 50

    run(work())


@pytest.mark.parametrize(
    ("message", "failure"), [(None, "cancelled"), ("case_timeout", "case_timeout"), ("other", "cancelled")]
)
@pytest.mark.parametrize("when", ["connecting", "waiting", "reading"])
def test_a_cancelled_call_hands_over_its_evidence(when: str, message: str | None, failure: str) -> None:
    async def work() -> None:
        sent = {"connecting": b"", "waiting": b"", "reading": STREAM_HEAD + chunk(event("half "))}[when]
        async with ScriptedServer(_stalls_after(sent)) as server, GatewayClient() as client:
            to = target(server.base_url)
            partial: list[CallOutcome] = []
            task = asyncio.create_task(
                client.send(
                    request(to), api_key=None, limits=limits(), target=to, on_cancelled=partial.append
                )
            )
            await asyncio.sleep(0 if when == "connecting" else 0.1)
            task.cancel(message)
            with pytest.raises(asyncio.CancelledError):
                await task
            (outcome,) = partial
            checked_evidence(outcome)
            assert (outcome.kind, outcome.reply.failure) == ("failed", failure)
            assert outcome.reply.text == ("half " if when == "reading" else "")
            assert outcome.never_sent == (when == "connecting")
            if when != "connecting":
                assert len(server.requests) == 1

    run(work())


def test_a_timeout_around_the_call_still_belongs_to_its_owner() -> None:
    async def work() -> None:
        async with ScriptedServer(_stalls_after(b"")) as server:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await send_once(server.base_url)
            task = asyncio.current_task()
            assert task is not None
            assert task.cancelling() == 0

    run(work())


def test_after_a_limit_the_task_goes_on_undisturbed() -> None:
    async def work() -> None:
        async with ScriptedServer(_stalls_after(b"")) as server:
            await send_once(server.base_url, bounds=limits(idle_timeout_s=0.1))
            task = asyncio.current_task()
            assert task is not None
            assert task.cancelling() == 0
            await asyncio.sleep(0.01)

    run(work())


@pytest.mark.parametrize(
    ("acknowledged", "failure"),
    [("h1", None), ("h2", "config_hash_mismatch"), (None, "config_hash_mismatch")],
)
def test_a_mom_call_must_acknowledge_the_frozen_config(acknowledged: str | None, failure: str | None) -> None:
    async def script(connection: Connection) -> None:
        headers = ["Content-Type: text/event-stream", "x-vsr-selected-model: m-1"]
        if acknowledged is not None:
            headers.append(f"x-sr-bench-config-hash: {acknowledged}")
        await connection.send(whole(200, ANSWER, *headers))

    async def work() -> None:
        async with ScriptedServer(script) as server:
            outcome = await send_once(server.base_url, kind="mom", config_hash="h1", max_inference_calls=3)
            assert outcome.reply.failure == failure
            assert outcome.receipt is not None
            assert outcome.receipt.selected_model == "m-1"
            head = server.requests[0][0].lower()
            assert b"x-sr-bench-expected-config-hash: h1" in head
            assert b"x-sr-bench-max-inference-calls: 3" in head
            assert b"x-vsr-debug: true" in head

    run(work())
