"""From the raw bytes of one HTTP response to the derived record of a chat-completion reply.

The live path and the offline rebuild run the same code on the same bytes, so their records compare equal. How
bytes were cut into reads never changes the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

import orjson

from resources.gateway.answer import final_answer
from resources.gateway.chunks import ReplyParts
from resources.gateway.guards import OutputGuard
from resources.gateway.response_text import error_message, error_text, media_type
from resources.gateway.sse import EventStreamDecoder
from resources.gateway.tolerant_json import decode_json, is_cut_json
from resources.gateway.usage import MISSING, Usage, normalise_usage

End = Literal[
    # How the transport ended.
    "eof",
    "reset",
    "stall",
    "total_timeout",
    "connect_error",
    "connection_lost",
    # Stopped from outside.
    "case_timeout",
    "run_timeout",
    "cancelled",
    # Verdicts of this side: they fail the call even where [DONE] was seen.
    "output_chars_limit",
    "output_tokens_limit",
    "repetition",
    "log_bytes_limit",
    "config_hash_mismatch",
]
VERDICTS: Final = frozenset(
    {"output_chars_limit", "output_tokens_limit", "repetition", "log_bytes_limit", "config_hash_mismatch"}
)
_FAILURE_OF_END: Final[Mapping[str, str]] = {
    "eof": "stream_truncated",
    "reset": "stream_truncated",
    "stall": "stalled",
}
_COMPLETE: Final[Mapping[str, bool]] = {
    "stop": True,
    "tool_calls": True,
    "function_call": True,
    "length": False,
    "content_filter": False,
}
_BOM = b"\xef\xbb\xbf"
_SPACE = b" \t\r\n"
_ERROR_BODY_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Reply:
    """The derived record of one call."""

    call_status: Literal["completed", "failed"]
    failure: str | None
    text: str = ""
    """All visible text received, also when the call failed."""
    reasoning: str = ""
    final: str = ""
    """`text` without think blocks, trimmed."""
    finish_reason: str | None = None
    output_complete: bool | None = None
    """False for a truncated or filtered answer; None where nobody said (and for every failed call)."""
    usage: Usage = MISSING
    raw_usage: Mapping[str, Any] | None = None
    """The last usage object as received."""
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    model: str | None = None
    flags: tuple[str, ...] = ()
    done_count: int = 0
    """[DONE] marks in the bytes kept."""
    usage_final: bool = False
    """The reply came to its end, so `usage` is the whole of it. Running counts of a broken stream are not."""
    error_message: str | None = None
    """What the server said was wrong, cut to a readable length."""

    def as_dict(self) -> dict[str, Any]:
        """The JSON object that tools read; names and values as in the conformance vectors."""
        return {
            "call_status": self.call_status,
            "failure": self.failure,
            "text": self.text,
            "reasoning": self.reasoning,
            "final": self.final,
            "finish_reason": self.finish_reason,
            "output_complete": self.output_complete,
            "usage": self.usage.as_dict(),
            "tool_calls": [dict(call) for call in self.tool_calls],
            "model": self.model,
            "flags": list(self.flags),
        }


def failed_reply(failure: str, error_message: str | None = None) -> Reply:
    """The record of a call that got no response at all."""
    return Reply("failed", failure, error_message=error_message)


def parse_reply(
    http_status: int, headers: Mapping[str, str], chunks: Iterable[bytes], end: End = "eof"
) -> Reply:
    """Record of a reply whose bytes are all at hand: `chunks` in order, then `end`."""
    builder = ReplyBuilder(http_status, headers)
    for chunk in chunks:
        builder.feed(chunk)
    return builder.finish(end)


class ReplyBuilder:
    """Takes the body of one response read by read, then tells the `Reply`.

    Stop reading once `finished` is true: at [DONE], at malformed JSON, at an error event, or at a guard's
    verdict.
    """

    __slots__ = (
        "_body",
        "_body_size",
        "_decoder",
        "_failure",
        "_flags",
        "_guard",
        "_message",
        "_mode",
        "_whole",
        "done_count",
        "finished",
        "parts",
        "verdict",
    )

    def __init__(
        self, http_status: int, headers: Mapping[str, str], guard: OutputGuard | None = None
    ) -> None:
        self.finished = False
        self.parts = ReplyParts()
        """What has arrived so far; `parts.has_output` turning true is the first token."""
        self.done_count = 0
        self.verdict: End | None = None
        """The guard's objection, if any."""
        self._guard = guard
        self._decoder = EventStreamDecoder()
        self._body: list[bytes] = []
        self._body_size = 0
        self._failure: str | None = None
        self._message: str | None = None
        self._flags: set[str] = set()
        self._whole = False
        self._mode: Literal["error", "stream", "json", "undecided"]
        # Redirects are not followed, so a 3xx is no reply either.
        if http_status >= 300:
            self._mode = "error"
        else:
            self._mode = "stream" if media_type(headers) == "text/event-stream" else "undecided"

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the body, cut anywhere."""
        if self._mode == "undecided":
            chunk = self._decide(chunk)
        if self._mode == "stream":
            for payload in self._decoder.feed(chunk):
                self._event(payload)
            if self._guard is not None and self.verdict is None:
                self._observe(self._guard)
        elif self._mode == "json" or (self._mode == "error" and self._body_size < _ERROR_BODY_BYTES):
            self._body.append(chunk)
            self._body_size += len(chunk)

    def finish(self, end: End = "eof") -> Reply:
        """The record, given how the body ended. Call it once."""
        if self._mode == "error":
            return failed_reply(
                end if end in VERDICTS else "http_error",
                error_text(b"".join(self._body)[:_ERROR_BODY_BYTES]),
            )
        if self._mode == "json":
            cut = self._finish_json()
        else:
            cut = self._finish_stream(end)
        parts = self.parts
        usage = normalise_usage(parts.raw_usage)
        clean_end = end == "eof" and not cut and (self._whole or parts.finish_reason is not None)
        failure = self._failure_at(end, clean_end, usage)
        completed = failure is None
        if completed and parts.finish_reason is None:
            self._flags.add("finish_reason_missing")
        if completed and self._mode != "json" and not self.done_count:
            self._flags.add("done_missing")
        text = "".join(parts.text)
        return Reply(
            call_status="completed" if completed else "failed",
            failure=failure,
            text=text,
            reasoning="".join(parts.reasoning),
            final=final_answer(text),
            finish_reason=parts.finish_reason,
            output_complete=_COMPLETE.get(parts.finish_reason or "") if completed else None,
            usage=usage,
            raw_usage=parts.raw_usage,
            tool_calls=parts.tool_calls(),
            model=parts.model,
            flags=tuple(sorted(self._flags)),
            done_count=self.done_count,
            usage_final=self._failure is None and (self.done_count > 0 or clean_end),
            error_message=self._message,
        )

    def _failure_at(self, end: End, clean_end: bool, usage: Usage) -> str | None:
        """The failure's name, None for a completed call; sets `verdict` where a guard objects only now."""
        if end in VERDICTS:
            return end
        if self._guard is not None and self.verdict is None and self._failure is None:
            self._observe(self._guard)
            if self.verdict is None:
                self.verdict = self._guard.tokens(usage.output_tokens)
        if self.verdict is not None:
            return self.verdict
        if self._failure is not None:
            return self._failure
        if self.done_count or clean_end:
            return None
        return _FAILURE_OF_END.get(end, end)

    def _observe(self, guard: OutputGuard) -> None:
        verdict = guard.observe(self.parts.text, self.parts.reasoning, self.parts.chars)
        if verdict is not None:
            self.verdict = verdict
            self.finished = True

    def _decide(self, chunk: bytes) -> bytes:
        """Tell a JSON body from an event stream by its first visible byte; hold white space back till then."""
        self._body.append(chunk)
        head = b"".join(self._body)
        first = head.removeprefix(_BOM).lstrip(b" \t\r\n")[:1]
        if not first or _BOM.startswith(head):
            return b""
        self._body = []
        self._mode = "json" if first == b"{" else "stream"
        return head

    def _event(self, payload: bytes) -> None:
        if payload == b"[DONE]" or (payload[-1] in _SPACE and payload.strip() == b"[DONE]"):
            self.done_count += 1
            self.finished = True
        elif not self.finished:
            try:
                event = orjson.loads(payload)
            except orjson.JSONDecodeError:
                self._odd_event(payload)
            else:
                self._take(event)

    def _odd_event(self, payload: bytes) -> None:
        try:
            event = self._decode(payload)
        except ValueError:
            self._failure = "invalid_json"
            self.finished = True
        else:
            self._take(event)

    def _decode(self, payload: bytes) -> Any:
        decoded = decode_json(payload)
        if decoded.invalid_utf8:
            self._flags.add("invalid_utf8")
        if decoded.lone_surrogate:
            self._flags.add("lone_surrogate")
        return decoded.value

    def _take(self, event: Any, *, whole: bool = False) -> None:
        """Take one decoded event; JSON that is no object carries nothing."""
        if not isinstance(event, dict):
            return
        event = cast("dict[str, Any]", event)
        error = event.get("error")
        if error is not None:
            self._failure = "error_event"
            self._message = error_message(error)
            self.finished = True
            return
        self.parts.take(event, whole=whole)

    def _finish_stream(self, end: End) -> bool:
        """Take the event that was still open; return whether the stream was cut inside it."""
        if self._mode == "undecided":
            self._decoder.feed(b"".join(self._body))
        tail = self._decoder.close()
        if self.finished and tail.payload != b"[DONE]":
            return False
        if tail.payload is not None:
            # Where the transport broke, or the last line has no end, malformed means cut short.
            may_be_cut = end != "eof" or tail.open_line_is_data
            if may_be_cut and not _is_whole(tail.payload):
                return True
            self._event(tail.payload)
        return tail.open_line and not (tail.open_line_is_data and tail.payload is not None)

    def _finish_json(self) -> bool:
        """Read a body that is one JSON object; return whether it was cut."""
        self._flags.add("not_streamed")
        body = b"".join(self._body).removeprefix(_BOM)
        try:
            value = self._decode(body)
        except ValueError:
            if is_cut_json(body):
                return True
            self._failure = "invalid_json"
            return False
        self._take(value, whole=True)
        # An object without choices is no chat completion, hence not a whole reply.
        self._whole = isinstance(value, dict) and isinstance(
            cast("dict[str, Any]", value).get("choices"), list
        )
        return False


def _is_whole(payload: bytes) -> bool:
    if payload.strip() == b"[DONE]":
        return True
    try:
        decode_json(payload)
    except ValueError:
        return False
    return True
