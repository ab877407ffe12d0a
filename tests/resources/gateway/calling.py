"""What the client tests share: small limits, a target, and events as servers send them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from typing import Any, TypeVar

import uvloop

from resources.gateway.client import GatewayClient
from resources.gateway.evidence import Evidence, decode_evidence, rebuild_reply
from resources.gateway.outcome import CallOutcome
from resources.gateway.request import ChatRequest, build_request
from resources.targets import Target
from sr_bench_assets.plans.manifest import Limits, Sampling

T = TypeVar("T")
MESSAGES = [{"role": "user", "content": "Which letter?"}]
DONE = b"data: [DONE]\n\n"


def event(text: str | None = None, *, finish: str | None = None, **members: Any) -> bytes:
    """One chunk of a chat completion as an event."""
    delta = {} if text is None else {"content": text}
    value = {
        "id": "r1",
        "model": "m-1",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        **members,
    }
    return b"data: " + json.dumps(value).encode() + b"\n\n"


USAGE = event(usage={"prompt_tokens": 11, "completion_tokens": 4, "total_tokens": 15})
ANSWER = event("The answer ") + event("is (B)") + event(finish="stop") + USAGE + DONE


def limits(**changes: Any) -> Limits:
    return Limits(**{"total_timeout_s": 5, "idle_timeout_s": 2, "connect_timeout_s": 2, **changes})


def target(base_url: str, **changes: Any) -> Target:
    return Target(**{"id": "t", "kind": "single", "base_url": base_url, "model": "m-1", **changes})


def request(to: Target, *, stream: bool = True, bounds: Limits | None = None) -> ChatRequest:
    return build_request(to, Sampling(stream=stream), bounds or limits(), MESSAGES)


async def send_once(
    base_url: str,
    *,
    bounds: Limits | None = None,
    stream: bool = True,
    api_key: str | None = None,
    **changes: Any,
) -> CallOutcome:
    """Send one call on a client of its own; check that its evidence rebuilds to the same record."""
    to = target(base_url, **changes)
    async with GatewayClient() as client:
        outcome = await client.send(
            request(to, stream=stream), api_key=api_key, limits=bounds or limits(), target=to
        )
    checked_evidence(outcome)
    return outcome


def checked_evidence(outcome: CallOutcome) -> Evidence:
    """The outcome's evidence, after the promise that it rebuilds to the live record."""
    evidence = decode_evidence(outcome.evidence, sha256=outcome.evidence_sha256)
    assert rebuild_reply(evidence) == outcome.reply
    assert evidence.never_sent == outcome.never_sent
    return evidence


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run one test's coroutine on the loop that runs use, bounded so that a hang fails instead of waiting."""

    async def bounded() -> T:
        async with asyncio.timeout(30):
            return await work

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as loop:
        return loop.run(bounded())
