"""Puts an answer on the wire: paced events or one JSON body, with the faults that strike in between."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import orjson
from aiohttp import web

from resources.lab.faults import FaultRule
from resources.lab.gateway import Answer
from resources.lab.models import pieces
from resources.lab.shapes import Wire
from resources.lab.stats import RequestRecord

SHORTEST_SLEEP_S = 0.001
HEARTBEAT_S = 0.25
REPEATED = "and so on and on again "


class ConnectionCut(Exception):
    """The fault closed the connection; nothing more can be sent."""


def wire_of(answer: Answer, record: RequestRecord, *, usage: bool) -> Wire:
    """The encoder of this answer's events; `usage` as asked for by `stream_options.include_usage`."""
    execution = answer.execution
    return Wire(
        f"chatcmpl-lab-{record.seq}",
        execution.model,
        int(record.received_at),
        frozenset(execution.behaviour.stream_shapes),
        answer.usage if usage else None,
    )


def output_events(answer: Answer, wire: Wire, fault: FaultRule | None) -> Iterator[bytes]:
    """The events that carry tokens, in order."""
    execution = answer.execution
    if fault is not None and fault.kind in ("repeat", "flood"):
        for number in range(fault.events):
            yield wire.content(REPEATED if fault.kind == "repeat" else f"word{number} ")
        return
    size = execution.behaviour.latency.tokens_per_event
    think = "think_tags" in wire.shapes and bool(execution.reply.reasoning)
    if think:
        yield wire.reasoning("<think>")
    for piece in pieces(execution.reply.reasoning, size):
        yield wire.reasoning(piece)
    if think:
        yield wire.reasoning("</think>\n\n")
    for piece in pieces(execution.reply.text, size):
        yield wire.content(piece)


async def send_stream(
    request: web.Request,
    response: web.StreamResponse,
    answer: Answer,
    wire: Wire,
    record: RequestRecord,
    fault: FaultRule | None,
    time_scale: float,
) -> None:
    """Send the whole stream at the model's pace; events that are due together leave in one write."""
    await response.prepare(request)
    latency = answer.execution.behaviour.latency
    step = latency.tokens_per_event / latency.tokens_per_second * time_scale
    due = time.monotonic() + answer.first_token_s * time_scale
    await response.write(b"".join(wire.opening()))
    batch: list[bytes] = []
    for number, event in enumerate(output_events(answer, wire, fault)):
        if fault is not None and number == fault.after_events:
            await _flush(response, batch)
            await _strike(request, response, wire, event, fault)
        wait = due - time.monotonic()
        if wait > SHORTEST_SLEEP_S or len(batch) >= 1000:
            await _flush(response, batch)
            await asyncio.sleep(max(0, wait))
        if record.first_token_at is None:
            record.first_token_at = time.time()
        batch.append(event)
        due += step
    batch.extend(wire.closing(answer.execution.finish_reason))
    await _flush(response, batch)
    await response.write_eof()


async def _flush(response: web.StreamResponse, batch: list[bytes]) -> None:
    if batch:
        await response.write(b"".join(batch))
        batch.clear()


async def _strike(
    request: web.Request, response: web.StreamResponse, wire: Wire, event: bytes, fault: FaultRule
) -> None:
    if fault.kind == "stall":
        await asyncio.sleep(fault.seconds)
    elif fault.kind == "heartbeat":
        async for beat in _heartbeats(wire, fault.seconds):
            await response.write(beat)
    elif fault.kind == "cut":
        await response.write(event[: len(event) // 2])
        close(request)
        raise ConnectionCut
    elif fault.kind == "error_event":
        await response.write(wire.error("lab: error on demand"))
        await response.write_eof()
        raise ConnectionCut
    elif fault.kind == "invalid_json":
        await response.write(wire.invalid())


async def _heartbeats(wire: Wire, seconds: float) -> AsyncIterator[bytes]:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield wire.heartbeat()
        await asyncio.sleep(HEARTBEAT_S)


async def send_body(
    request: web.Request,
    response: web.StreamResponse,
    answer: Answer,
    wire: Wire,
    record: RequestRecord,
    fault: FaultRule | None,
    time_scale: float,
) -> None:
    """Send a reply that is not streamed: the whole JSON after the time that generating it takes."""
    execution = answer.execution
    generating = execution.tokens.output / execution.behaviour.latency.tokens_per_second
    await asyncio.sleep((answer.first_token_s + generating) * time_scale)
    body = reply_body(answer, wire)
    kind = fault.kind if fault is not None else None
    if kind == "error_event":
        body = orjson.dumps({"error": {"message": "lab: error on demand", "type": "lab_fault"}})
    elif kind == "invalid_json":
        body = body[: len(body) // 2]
    response.content_length = len(body)
    await response.prepare(request)
    record.first_token_at = time.time()
    if fault is not None and kind in ("stall", "heartbeat", "cut"):
        await response.write(body[: len(body) // 2])
        if kind == "cut":
            close(request)
            raise ConnectionCut
        await asyncio.sleep(fault.seconds)
        body = body[len(body) // 2 :]
    await response.write(body)
    await response.write_eof()


def reply_body(answer: Answer, wire: Wire) -> bytes:
    """A `chat.completion` object."""
    execution = answer.execution
    text, reasoning = execution.reply.text, execution.reply.reasoning
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if reasoning and "think_tags" in wire.shapes:
        message["content"] = f"<think>{reasoning}</think>\n\n{text}"
    elif reasoning:
        message["reasoning" if "reasoning_field" in wire.shapes else "reasoning_content"] = reasoning
    if "content_parts" in wire.shapes:
        message["content"] = [{"type": "text", "text": message["content"]}]
    finish = None if "no_finish_reason" in wire.shapes else execution.finish_reason
    body: dict[str, Any] = {
        "id": wire.reply_id,
        "object": "chat.completion",
        "created": wire.created,
        "model": wire.model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
    }
    if answer.usage is not None:
        body["usage"] = answer.usage
    return orjson.dumps(body)


def close(request: web.Request) -> None:
    """Close the connection under the client's feet, after what was written."""
    if request.transport is not None:
        request.transport.close()
