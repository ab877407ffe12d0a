"""The derived record of one call, and the names of its possible ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from resources.gateway.usage import MISSING, Usage

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
]
Verdict = Literal[
    # Objections of this side: they fail the call even where [DONE] was seen.
    "output_chars_limit",
    "output_tokens_limit",
    "repetition",
    "log_bytes_limit",
    "config_hash_mismatch",
]
_FAILURE_OF_END: Final[Mapping[str, str]] = {
    "eof": "stream_truncated",
    "reset": "stream_truncated",
    "stall": "stalled",
}


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


def failure_of(end: End) -> str:
    """The failure's name for a reply that was not over when `end` came."""
    return _FAILURE_OF_END.get(end, end)


def no_response(end: End, detail: str | None = None) -> Reply:
    """The record of a call that got no response at all; `detail` is the transport's own word."""
    return Reply("failed", failure_of(end), error_message=detail)
