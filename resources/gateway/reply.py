"""From the raw bytes of one HTTP response to the derived record of a chat-completion reply.

The live path and the offline rebuild run the same code on the same bytes, so their records compare equal. How
bytes were cut into reads never changes the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, cast

import orjson

from resources.gateway.answer import final_answer
from resources.gateway.chunks import ReplyParts
from resources.gateway.content_coding import CodingError, Inflater, is_identity
from resources.gateway.guards import OutputGuard
from resources.gateway.record import End, Reply, Verdict, failure_of
from resources.gateway.response_text import error_message, error_text, is_json, media_type
from resources.gateway.sse import EventStreamDecoder
from resources.gateway.tolerant_json import decode_json, is_cut_json
from resources.gateway.usage import Usage, normalise_usage

_COMPLETE: Final[Mapping[str, bool]] = {
    "stop": True,
    "tool_calls": True,
    "function_call": True,
    "length": False,
    "content_filter": False,
}
_BOM = b"\xef\xbb\xbf"
_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")
"""What the first line of an event stream begins with."""
UNREADABLE: Final = (ValueError, TypeError, RecursionError, OverflowError)
"""What a reply that nobody foresaw may raise: it fails its call and nothing else."""
_ERROR_BODY_BYTES = 4096


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
        "_inflater",
        "_message",
        "_mode",
        "_says_json",
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
        self.verdict: Verdict | None = None
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
        media = media_type(headers)
        # Redirects are not followed, so a 3xx is no reply either.
        if http_status >= 300:
            self._mode = "error"
        else:
            self._mode = "stream" if media == "text/event-stream" else "undecided"
        self._says_json = is_json(media)
        coding = headers.get("content-encoding", "")
        self._inflater = None if is_identity(coding) else Inflater(coding)

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the body, cut anywhere."""
        try:
            if self._inflater is not None:
                chunk = b"" if self._failure else self._inflater.feed(chunk)
            if chunk:
                self._feed(chunk)
        except CodingError as error:
            self._fail("unknown_encoding", str(error))
        except UNREADABLE as error:
            self._fail("invalid_json", f"unreadable: {type(error).__name__}")

    def _fail(self, failure: str, message: str | None = None) -> None:
        self._failure = failure
        self._message = message
        self.finished = True

    def _feed(self, chunk: bytes) -> None:
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

    def finish(self, end: End = "eof", verdict: Verdict | None = None) -> Reply:
        """The record, given how the body ended; `verdict` fails the call whatever it holds. Call it once."""
        try:
            if self._inflater is not None and self._failure is None and (rest := self._inflater.close()):
                self._feed(rest)
            return self._finish(end, verdict)
        except UNREADABLE as error:
            return Reply("failed", "invalid_json", error_message=f"unreadable: {type(error).__name__}")

    def _finish(self, end: End, verdict: Verdict | None) -> Reply:
        if self._mode == "error":
            message = self._message or error_text(b"".join(self._body)[:_ERROR_BODY_BYTES])
            return Reply("failed", "http_error", error_message=message)
        self.verdict = self.verdict or verdict
        cut = self._finish_json() if self._mode == "json" else self._finish_stream(end)
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
            error_message=self._message,
        )

    def _failure_at(self, end: End, clean_end: bool, usage: Usage) -> str | None:
        """The failure's name, None for a completed call; sets `verdict` where a guard objects only now."""
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
        return failure_of(end)

    def _observe(self, guard: OutputGuard) -> None:
        verdict = guard.observe(self.parts.text, self.parts.reasoning, self.parts.chars)
        if verdict is not None:
            self.verdict = verdict
            self.finished = True

    def _decide(self, chunk: bytes) -> bytes:
        """Tell a JSON body from an event stream by its first visible byte; hold white space till then."""
        self._body.append(chunk)
        head = b"".join(self._body)
        text = head.removeprefix(_BOM).lstrip(b" \t\r\n")
        if not text or _BOM.startswith(head):
            return b""
        # Some servers call their event streams JSON.
        line_may_follow = self._says_json and any(name.startswith(text) for name in _FIELDS)
        if line_may_follow and text not in _FIELDS:
            return b""
        self._body = []
        if text[:1] == b"{" or (self._says_json and not text.startswith(_FIELDS)):
            self._mode = "json"
        else:
            self._mode = "stream"
        return head

    def _event(self, payload: bytes) -> None:
        if payload == b"[DONE]":
            self._done()
        elif not self.done_count and self._failure is None:
            try:
                event = orjson.loads(payload)
            except orjson.JSONDecodeError:
                self._odd_event(payload)
                return
            if event.__class__ is dict and event.get("error") is None:
                self.parts.take(event)
            else:
                self._take(event)

    def _done(self) -> None:
        self.done_count += 1
        self.finished = True

    def _odd_event(self, payload: bytes) -> None:
        if payload.strip() == b"[DONE]":
            self._done()
            return
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
        if (self.done_count or self._failure is not None) and tail.payload != b"[DONE]":
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
