"""How a reply looks on the wire: usage objects and stream events of usual and odd gateways."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import orjson

UsageShape = Literal[
    "openai",  # prompt_tokens, completion_tokens, prompt_tokens_details.cached_tokens
    "openai_responses",  # input_tokens with input_tokens_details
    "additive",  # input_tokens is fresh; cache_read_input_tokens and cache_creation_input_tokens on top
    "hit_miss",  # prompt_cache_hit_tokens, prompt_cache_miss_tokens
    "no_details",  # no word on caches
    "cached_null",  # prompt_tokens_details.cached_tokens is null
    "details_null",  # prompt_tokens_details is null
    "float",  # counts as 12.0
    "zero",  # all counts 0
    "conflict",  # two unequal counts of cached tokens
    "total_mismatch",  # total_tokens is not the sum
    "missing",  # no usage at all
]
StreamShape = Literal[
    "crlf",
    "no_space",
    "comments",
    "event_lines",
    "ascii",
    "first_empty",
    "tool_calls_null",
    "content_parts",
    "reasoning_field",
    "think_tags",
    "usage_inline",
    "usage_choices_null",
    "usage_no_choices",
    "usage_null_on_events",
    "no_done",
    "no_finish_reason",
    "bad_utf8",
    "json_content_type",
]


@dataclass(frozen=True)
class Tokens:
    """True token counts of one simulated call; the three prompt buckets are exclusive."""

    fresh: int
    cached: int
    written: int
    output: int
    reasoning: int

    @property
    def prompt(self) -> int:
        return self.fresh + self.cached + self.written

    def plus(self, other: Tokens) -> Tokens:
        return Tokens(
            self.fresh + other.fresh,
            self.cached + other.cached,
            self.written + other.written,
            self.output + other.output,
            self.reasoning + other.reasoning,
        )


def usage_object(shape: UsageShape, tokens: Tokens, *, caches: bool) -> dict[str, Any] | None:
    """The usage value a gateway of this shape sends; `caches` is False for a model without a prompt cache."""
    prompt, output = tokens.prompt, tokens.output
    if shape == "missing":
        return None
    if shape == "zero":
        return {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    if shape == "openai_responses":
        details = {"cached_tokens": tokens.cached, "cache_write_tokens": tokens.written}
        return {"input_tokens": prompt, "input_tokens_details": details, "output_tokens": output}
    if shape == "additive":
        return {
            "input_tokens": tokens.fresh,
            "cache_read_input_tokens": tokens.cached,
            "cache_creation_input_tokens": tokens.written,
            "output_tokens": output,
        }
    usage: dict[str, Any] = {
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "total_tokens": prompt + output,
    }
    if tokens.reasoning:
        usage["completion_tokens_details"] = {"reasoning_tokens": tokens.reasoning}
    if shape == "openai" and caches:
        usage["prompt_tokens_details"] = {"cached_tokens": tokens.cached}
        if tokens.written:
            usage["prompt_tokens_details"]["cache_write_tokens"] = tokens.written
    elif shape == "hit_miss":
        usage |= {
            "prompt_cache_hit_tokens": tokens.cached,
            "prompt_cache_miss_tokens": prompt - tokens.cached,
        }
    elif shape == "cached_null":
        usage["prompt_tokens_details"] = {"cached_tokens": None}
    elif shape == "details_null":
        usage["prompt_tokens_details"] = None
    elif shape == "float":
        usage |= {"prompt_tokens": float(prompt), "completion_tokens": float(output)}
    elif shape == "conflict":
        usage["prompt_tokens_details"] = {"cached_tokens": tokens.cached + 1}
        usage["prompt_cache_hit_tokens"] = tokens.cached
    elif shape == "total_mismatch":
        usage["total_tokens"] = prompt + output + 1
    return usage


@dataclass(frozen=True)
class Wire:
    """Encodes the events of one streamed reply."""

    reply_id: str
    model: str
    created: int
    shapes: frozenset[StreamShape]
    usage: dict[str, Any] | None

    def delta(self, delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
        """One chunk event with one choice."""
        return self._event({"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]})

    def content(self, text: str) -> bytes:
        if "content_parts" in self.shapes:
            return self.delta({"content": [{"type": "text", "text": text}]})
        return self.delta({"content": text})

    def reasoning(self, text: str) -> bytes:
        field = "reasoning" if "reasoning_field" in self.shapes else "reasoning_content"
        return self.delta({"content": text} if "think_tags" in self.shapes else {field: text})

    def opening(self) -> Iterator[bytes]:
        """Events before the first token."""
        if "comments" in self.shapes:
            yield self._raw(b": lab keeps the line open")
        if "first_empty" in self.shapes:
            yield self._event({"choices": []})
        role: dict[str, Any] = {"role": "assistant", "content": ""}
        yield self.delta(role | ({"tool_calls": None} if "tool_calls_null" in self.shapes else {}))
        if "bad_utf8" in self.shapes:
            yield self._raw(b'data: {"choices":[{"index":0,"delta":{"content":"\xff"}}]}')

    def closing(self, finish_reason: str) -> Iterator[bytes]:
        """Events after the last token."""
        finish = {"choices": [{"index": 0, "delta": {}, "finish_reason": finish_reason}]}
        inline = self.usage is not None and "usage_inline" in self.shapes
        if "no_finish_reason" not in self.shapes:
            yield self._event(finish | ({"usage": self.usage} if inline else {}))
        if self.usage is not None and not inline:
            if "usage_no_choices" in self.shapes:
                yield self._event({"usage": self.usage})
            else:
                choices = None if "usage_choices_null" in self.shapes else []
                yield self._event({"choices": choices, "usage": self.usage})
        if "no_done" not in self.shapes:
            yield self._raw(b"data: [DONE]")

    def error(self, message: str) -> bytes:
        return self._raw(
            b"data: " + orjson.dumps({"error": {"message": message, "type": "lab_fault", "code": 500}})
        )

    def invalid(self) -> bytes:
        return self._raw(b'data: {"choices": [{"index": 0, "delta": {"content": "lab')

    def heartbeat(self) -> bytes:
        return self._raw(b": lab heartbeat")

    def _event(self, body: dict[str, Any]) -> bytes:
        event = {"id": self.reply_id, "object": "chat.completion.chunk", "created": self.created} | {
            "model": self.model
        }
        event |= body
        if "usage_null_on_events" in self.shapes and "usage" not in body:
            event["usage"] = None
        data = json.dumps(event).encode() if "ascii" in self.shapes else orjson.dumps(event)
        prefix = b"data:" if "no_space" in self.shapes else b"data: "
        if "event_lines" in self.shapes:
            prefix = b"event: message" + self._newline + prefix
        return self._raw(prefix + data)

    @property
    def _newline(self) -> bytes:
        return b"\r\n" if "crlf" in self.shapes else b"\n"

    def _raw(self, line: bytes) -> bytes:
        return line + self._newline + self._newline
