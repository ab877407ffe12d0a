"""What one call came to, and small readings of response headers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Literal

from resources.gateway.record import End, Reply
from resources.gateway.router import RouterReceipt

_SECONDS = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?")


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """The end of one HTTP exchange. Times are measured from just before sending began."""

    kind: Literal["completed", "failed", "refused"]
    """Refused: HTTP 429, or 503 with Retry-After; nothing was generated and the request may be repeated."""
    reply: Reply
    end: End
    """How the transport ended, or who stopped the call."""
    http_status: int | None
    """None: no response head arrived."""
    headers: Mapping[str, str]
    """Response headers of interest, names in lower case."""
    retry_after_s: float | None
    """Seconds the server asked us to wait; None where it did not say (or unreadably)."""
    ttft_s: float | None
    """To the first text, reasoning or tool call of a stream; None for a reply that was not streamed."""
    latency_s: float
    """To the read that decided the call ([DONE], the end of the body, the failure)."""
    started_at: float
    """Seconds since the epoch."""
    evidence: bytes = field(repr=False)
    """The compressed evidence frame."""
    evidence_sha256: str
    """Hex SHA-256 of the uncompressed frame."""
    receipt: RouterReceipt | None
    lab: bool
    """The server says that it is the lab, so no figure of it is a measurement of a model."""
    never_sent: bool
    """No byte of the request's body left this machine."""
    detail: str | None = None
    """The transport's own words about a failure."""


def is_refusal(http_status: int, headers: Mapping[str, str]) -> bool:
    """Whether a response (header names in lower case) refuses the request before any generation."""
    return http_status == 429 or (http_status == 503 and "retry-after" in headers)


def retry_after_seconds(value: str | None, now: float) -> float | None:
    """Seconds to wait by a Retry-After header (seconds or a date) at `now` (epoch); None if unreadable."""
    if value is None:
        return None
    text = value.strip()
    if _SECONDS.fullmatch(text):
        return float(text)
    if not text[:1].isalpha():
        return None
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.fromtimestamp(now, UTC)).total_seconds())
