"""Calls: what is journaled before a request leaves, how it ended, and how both are read."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

from sqlalchemy import Row, select

from resources.errors import NotFound, SrBenchError
from resources.journal.connection import Journal
from resources.journal.money import decimal_text
from resources.journal.record_text import bigint, dump_json, load_json, storable
from resources.journal.schema import calls

Role = Literal["subject", "judge", "simulator"]
Outcome = Literal["completed", "failed", "refused"]


def new_call_id() -> str:
    """A fresh id: 32 hex digits."""
    return secrets.token_hex(16)


@dataclass(frozen=True)
class RateCeiling:
    """Ceilings that all processes on the journal keep together for calls of one `key` (an endpoint)."""

    key: str
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    max_in_flight: int | None = None


@dataclass(frozen=True, slots=True)
class Dispatch:
    """One request about to be sent."""

    benchmark: str
    case_id: str
    target_id: str
    role: Role
    step: int
    """Number of this call within its case and role, from 0."""
    attempt: int
    """0, then one more after each refusal by the server."""
    request_sha256: str
    reserved_pico: int
    """Upper bound of its price in pico-dollars; 0 where no price is known."""
    reserved_tokens: int = 0
    """Upper bound of its tokens, counted against `tokens_per_minute` until the real usage is known."""
    rate: RateCeiling | None = None
    queue_wait_s: float | None = None
    call_id: str = field(default_factory=new_call_id)

    def columns(self, run_id: str, seq: int, now: float) -> dict[str, Any]:
        """Values for the `calls` table."""
        return {
            "id": self.call_id,
            "seq": seq,
            "run_id": run_id,
            "benchmark": self.benchmark,
            "case_id": self.case_id,
            "target_id": self.target_id,
            "role": self.role,
            "step": self.step,
            "attempt": self.attempt,
            "request_sha256": self.request_sha256,
            "reserved_pico": self.reserved_pico,
            "reserved_tokens": self.reserved_tokens,
            "rate_key": None if self.rate is None else self.rate.key,
            "dispatched_at": now,
            "queue_wait_s": self.queue_wait_s,
        }


@dataclass(frozen=True, slots=True)
class CallEnd:
    """How a dispatched call ended."""

    call_id: str
    benchmark: str
    outcome: Outcome
    spent_pico: int | None
    """What it cost in pico-dollars (0 if refused or never sent). None: unknown, the reservation is kept."""
    failure: str | None = None
    http_status: int | None = None
    model: str | None = None
    finish_reason: str | None = None
    output_complete: bool | None = None
    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    cache_write_tokens: int | None = None
    output_tokens: int | None = None
    usage: Mapping[str, Any] | None = None
    cost_usd: Decimal | None = None
    cost_reason: str | None = None
    cache_neutral_cost_usd: Decimal | None = None
    ttft_s: float | None = None
    latency_s: float | None = None
    selected_model: str | None = None
    decision: str | None = None
    lab: bool | None = None
    record: Mapping[str, Any] | None = None
    """Text, reasoning, final, tool_calls, flags, headers, children…"""
    evidence: bytes = b""
    """The compressed evidence frame; empty where no byte came back."""
    evidence_sha256: str | None = None
    finished_at: float = 0.0
    """Seconds since the epoch; 0 lets the writer stamp it."""

    def columns(self, now: float) -> dict[str, Any]:
        """Values for the `calls` table, all but the place of the evidence."""
        return {
            "finished_at": self.finished_at or now,
            "outcome": self.outcome,
            "spent_pico": self.spent_pico,
            "failure": self.failure,
            "http_status": self.http_status,
            "model": storable(self.model),
            "finish_reason": storable(self.finish_reason),
            "output_complete": self.output_complete,
            "input_tokens": bigint(self.input_tokens),
            "cached_input_tokens": bigint(self.cached_input_tokens),
            "cache_write_tokens": bigint(self.cache_write_tokens),
            "output_tokens": bigint(self.output_tokens),
            "usage": None if self.usage is None else dump_json(dict(self.usage)),
            "cost_usd": decimal_text(self.cost_usd),
            "cost_reason": self.cost_reason,
            "cache_neutral_cost_usd": decimal_text(self.cache_neutral_cost_usd),
            "ttft_s": self.ttft_s,
            "latency_s": self.latency_s,
            "selected_model": storable(self.selected_model),
            "decision": storable(self.decision),
            "lab": self.lab,
            "record": None if self.record is None else dump_json(dict(self.record)),
            "evidence_sha256": self.evidence_sha256,
        }


@dataclass(frozen=True)
class CallRow:
    """One journaled call. `outcome` None: in flight or, where `failure` is set, without a known end."""

    id: str
    seq: int
    run_id: str
    benchmark: str
    case_id: str
    target_id: str
    role: Role
    step: int
    attempt: int
    request_sha256: str
    reserved_pico: int
    spent_pico: int | None
    reserved_tokens: int
    rate_key: str | None
    dispatched_at: float
    finished_at: float | None
    outcome: Outcome | None
    failure: str | None
    http_status: int | None
    model: str | None
    finish_reason: str | None
    output_complete: bool | None
    input_tokens: int | None
    cached_input_tokens: int | None
    cache_write_tokens: int | None
    output_tokens: int | None
    usage: dict[str, Any] | None
    cost_usd: Decimal | None
    cost_reason: str | None
    cache_neutral_cost_usd: Decimal | None
    ttft_s: float | None
    latency_s: float | None
    queue_wait_s: float | None
    selected_model: str | None
    decision: str | None
    lab: bool | None
    record: dict[str, Any]
    evidence_sha256: str | None
    evidence_segment: str | None
    evidence_offset: int | None
    evidence_length: int | None


def list_calls(
    journal: Journal,
    run_id: str,
    *,
    after: int | None = None,
    limit: int | None = None,
    benchmark: str | None = None,
    case_id: str | None = None,
    target_id: str | None = None,
    active: bool = False,
) -> list[CallRow]:
    """Calls of a run in order of dispatch; `after` is the `seq` of the last one already seen.

    `active` keeps only calls in flight.
    """
    query = select(calls).where(calls.c.run_id == run_id).order_by(calls.c.seq).limit(limit)
    if after is not None:
        query = query.where(calls.c.seq > after)
    for column, value in (
        (calls.c.benchmark, benchmark),
        (calls.c.case_id, case_id),
        (calls.c.target_id, target_id),
    ):
        if value is not None:
            query = query.where(column == value)
    if active:
        query = query.where(calls.c.outcome.is_(None), calls.c.failure.is_(None))
    with journal.connect() as connection:
        return [_call(row) for row in connection.execute(query)]


def get_call(journal: Journal, call_id: str) -> CallRow:
    """The call with that id or unique prefix of an id. Raises `NotFound`, or `SrBenchError` if ambiguous."""
    query = select(calls).where(calls.c.id.startswith(call_id, autoescape=True)).limit(2)
    with journal.connect() as connection:
        rows = connection.execute(query).all() if call_id else []
    if not rows:
        raise NotFound(
            f"no call {call_id!r}", field="call_id", mend="list calls with `sr-bench show RUN --calls`"
        )
    if len(rows) > 1:
        raise SrBenchError(f"{call_id!r} fits several calls", field="call_id", mend="write more of the id")
    return _call(rows[0])


def dispatched_cells(journal: Journal, run_id: str, benchmark: str | None = None) -> set[tuple[str, str]]:
    """Cells (case id, target id) of a run that have any journaled call: they are never sent again in it."""
    query = select(calls.c.case_id, calls.c.target_id).where(calls.c.run_id == run_id).distinct()
    if benchmark is not None:
        query = query.where(calls.c.benchmark == benchmark)
    with journal.connect() as connection:
        return {(row.case_id, row.target_id) for row in connection.execute(query)}


def _call(row: Row[Any]) -> CallRow:
    fields = dict(row._mapping)
    fields["usage"] = load_json(row.usage)
    fields["record"] = load_json(row.record) or {}
    for column in ("cost_usd", "cache_neutral_cost_usd"):
        fields[column] = None if fields[column] is None else Decimal(fields[column])
    return CallRow(**fields)
