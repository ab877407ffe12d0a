"""Request and token rates of a target, exact over a sliding minute and shared by all processes of a journal.

The window is read from `calls` in the transaction that journals the dispatch, so there is no second account
that could disagree with what was sent. Refused calls count as requests; a call's tokens count as reserved
until its real usage is known, and not at all if it was refused.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, field
from typing import Any, Literal

from sqlalchemy import ColumnElement, Connection, case, func, select, text

from resources.journal.calls import Dispatch, RateCeiling
from resources.journal.schema import calls

WINDOW_S = 60.0
MARGIN_S = 1.0
"""Added to the window: a request reaches the server a little after its dispatch was stamped, and by how much
varies; a ceiling per minute holds at the server as long as that varies by less than this."""
POLL_S = 0.1
"""When to ask again for a place among the calls in flight, which frees without notice."""

Cause = Literal["requests", "tokens", "concurrency"]


@dataclass
class Window:
    """What one rate key has used up, as of `now` (the database's clock); kept up to date while granting."""

    now: float
    requests: int
    tokens: int
    in_flight: int
    granted: list[Dispatch] = field(default_factory=list[Dispatch])
    """In this transaction, hence not in `calls` yet."""

    def refusal(self, dispatch: Dispatch, rate: RateCeiling) -> Cause | None:
        """Why `dispatch` must wait, or None. A call larger than the whole token ceiling goes alone."""
        if rate.max_in_flight is not None and self.in_flight >= rate.max_in_flight:
            return "concurrency"
        if rate.requests_per_minute is not None and self.requests >= rate.requests_per_minute:
            return "requests"
        if (
            rate.tokens_per_minute is not None
            and self.tokens > 0
            and self.tokens + dispatch.reserved_tokens > rate.tokens_per_minute
        ):
            return "tokens"
        return None

    def count(self, dispatch: Dispatch) -> None:
        """Take `dispatch` into account."""
        self.requests += 1
        self.tokens += dispatch.reserved_tokens
        self.in_flight += 1
        self.granted.append(dispatch)


_known_tokens = (
    calls.c.input_tokens + calls.c.cached_input_tokens + calls.c.cache_write_tokens + calls.c.output_tokens
)
_tokens = case((calls.c.outcome == "refused", 0), else_=func.coalesce(_known_tokens, calls.c.reserved_tokens))


def lock_rates(connection: Connection, dialect: str, keys: set[str]) -> float:
    """Let one transaction at a time grant for `keys`; returns the time by the clock that they share."""
    if dialect != "postgresql":
        return time.time()  # the transaction holds SQLite's only write lock, on this host
    for key in sorted(keys):
        number = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], signed=True)
        connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": number})
    return float(connection.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one())


def read_window(connection: Connection, rate: RateCeiling, now: float) -> Window:
    """What has been used of `rate` in the minute before `now`; only what has a ceiling is looked up."""
    requests = tokens = in_flight = 0
    if rate.requests_per_minute is not None or rate.tokens_per_minute is not None:
        summed: Any = func.sum(_tokens) if rate.tokens_per_minute is not None else 0
        requests, tokens = connection.execute(
            select(func.count(), summed).where(calls.c.rate_key == rate.key, *_within(now))
        ).one()
    if rate.max_in_flight is not None:
        in_flight = connection.execute(
            select(func.count())
            .select_from(calls)
            .where(calls.c.rate_key == rate.key, calls.c.outcome.is_(None), calls.c.failure.is_(None))
        ).scalar_one()
    return Window(now, requests, int(tokens or 0), in_flight)


def free_at(
    connection: Connection, window: Window, dispatch: Dispatch, rate: RateCeiling, cause: Cause
) -> float:
    """The earliest time, by the clock of the window, at which `dispatch` may fit."""
    now = window.now
    if cause == "concurrency":
        return now + POLL_S
    query = select(calls.c.dispatched_at, _tokens).where(calls.c.rate_key == rate.key, *_within(now))
    newest_first = query.order_by(calls.c.dispatched_at.desc())
    if cause == "requests":
        assert rate.requests_per_minute is not None  # the cause says so
        before = rate.requests_per_minute - 1 - len(window.granted)
        leaving = connection.execute(newest_first.offset(before).limit(1)).first() if before >= 0 else None
        return min(leaving.dispatched_at if leaving else now, now) + WINDOW_S + MARGIN_S
    assert rate.tokens_per_minute is not None  # the cause says so
    room = max(rate.tokens_per_minute - dispatch.reserved_tokens, 0)
    used = sum(granted.reserved_tokens for granted in window.granted)
    if used <= room:
        for at, tokens in connection.execute(newest_first):
            used += tokens
            if used > room:
                return min(at, now) + WINDOW_S + MARGIN_S
    return now + WINDOW_S + MARGIN_S


def _within(now: float) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """Dispatched in the window before `now`. A clock that was set back leaves calls of the future behind: those of
    more than a window ahead tell nothing any more, or a target would wait for as long as the step."""
    at = calls.c.dispatched_at
    return at > now - WINDOW_S - MARGIN_S, at < now + WINDOW_S + MARGIN_S
