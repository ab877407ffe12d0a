"""Building the bytes of a chat-completion request, before anything is sent."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import orjson

from resources.errors import SrBenchError
from resources.gateway.router import router_request_headers
from resources.targets import Target

USER_AGENT = "sr-bench/1"
_OURS = frozenset({"model", "messages", "stream_options"})
_TOKEN_CAPS = ("max_tokens", "max_completion_tokens")


class SamplingSettings(Protocol):
    """The plan's generation settings (`Sampling` of the manifest); None leaves a member out."""

    @property
    def temperature(self) -> float | None: ...
    @property
    def top_p(self) -> float | None: ...
    @property
    def max_tokens(self) -> int: ...
    @property
    def seed(self) -> int | None: ...
    @property
    def stop(self) -> list[str] | None: ...
    @property
    def presence_penalty(self) -> float | None: ...
    @property
    def frequency_penalty(self) -> float | None: ...
    @property
    def stream(self) -> bool: ...


class OutputCap(Protocol):
    """The plan's ceiling on output tokens (`Limits` of the manifest)."""

    @property
    def max_output_tokens(self) -> int: ...


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One request, ready to send. Holds no secret: the key is added when it is sent."""

    url: str
    body: bytes = field(repr=False)
    sha256: str
    """Hex SHA-256 of `body`: the request's identity in the journal."""
    max_tokens: int
    """The most output tokens the request allows; with `len(body)` the basis of the reservation."""
    stream: bool
    headers: Mapping[str, str]


def build_request(
    target: Target,
    sampling: SamplingSettings,
    limits: OutputCap,
    messages: Sequence[Mapping[str, Any]],
    extra: Mapping[str, Any] | None = None,
    *,
    session_id: str | None = None,
) -> ChatRequest:
    """The request for one chat completion of `target`.

    `sampling` gives the defaults, `extra` (tools and the like) comes over them, the target's frozen
    `request_params` over both; a null there takes the member out. Streams always ask for usage. Raises
    `SrBenchError` where `request_params` would change what is measured or exceed the plan's output cap.
    """
    members: dict[str, Any] = {"model": target.model, "messages": list(messages)}
    for name in (
        "temperature",
        "top_p",
        "max_tokens",
        "seed",
        "stop",
        "presence_penalty",
        "frequency_penalty",
    ):
        value = getattr(sampling, name)
        if value is not None:
            members[name] = value
    members["stream"] = sampling.stream
    if extra:
        members.update(extra)
    _override(members, target)
    stream = bool(members["stream"])
    if stream:
        members["stream_options"] = {"include_usage": True}
    caps = [members[name] for name in _TOKEN_CAPS if name in members]
    max_tokens = min(caps, default=limits.max_output_tokens)
    if max_tokens > limits.max_output_tokens:
        raise SrBenchError(
            f"target {target.id} asks for {max_tokens} output tokens, "
            f"the plan allows {limits.max_output_tokens}",
            field="limits.max_output_tokens",
            mend="Lower max_tokens or raise limits.max_output_tokens.",
        )
    body = _json_bytes(members)
    headers = {
        "Content-Type": "application/json",
        "Accept": "text/event-stream" if stream else "application/json",
        # The evidence is the body as sent; a compressed one would only be unpacked again.
        "Accept-Encoding": "identity",
        "User-Agent": USER_AGENT,
        **router_request_headers(target, session_id),
    }
    return ChatRequest(
        _completions_url(target.base_url), body, hashlib.sha256(body).hexdigest(), max_tokens, stream, headers
    )


def _override(members: dict[str, Any], target: Target) -> None:
    params = target.request_params
    for name in params:
        if name in _OURS or (name == "n" and params[name] not in (None, 1)):
            raise SrBenchError(
                f"target {target.id}: request_params may not set {name!r}",
                field=f"request_params.{name}",
                mend="Remove it; the benchmark sets it.",
            )
    if params.get("max_completion_tokens") is not None:
        # Providers that know this name refuse the other one beside it.
        members.pop("max_tokens", None)
    for name, value in params.items():
        if value is None:
            members.pop(name, None)
        else:
            members[name] = value
    members.setdefault("stream", False)
    for name in _TOKEN_CAPS:
        cap = members.get(name)
        if cap is not None and (type(cap) is not int or cap < 1):
            raise SrBenchError(
                f"target {target.id}: {name} is {cap!r}",
                field=f"request_params.{name}",
                mend="Give a whole number of tokens, at least 1.",
            )


def _completions_url(base_url: str) -> str:
    base = base_url.rstrip("/")
    return base if base.endswith("/chat/completions") else f"{base}/chat/completions"


def _json_bytes(members: Mapping[str, Any]) -> bytes:
    try:
        return orjson.dumps(members)
    except TypeError:
        # Lone surrogates and integers beyond 64 bits, which orjson refuses: escaped, they are still JSON.
        return json.dumps(members, separators=(",", ":"), allow_nan=False).encode()
