"""The facts that figures are made of: how each cell ended and what each call was, as plain typed rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import orjson

from sr_bench_assets.usage.call_accounting import CallAccounting, recorded_accounting

CELL_COLUMNS = (
    "case_id",
    "target_id",
    "benchmark",
    "status",
    "answer_status",
    "strict_format",
    "correct",
    "failure",
)
CALL_COLUMNS = (
    "id",
    "case_id",
    "target_id",
    "benchmark",
    "role",
    "step",
    "attempt",
    "outcome",
    "failure",
    "model",
    "finish_reason",
    "input_tokens",
    "cached_input_tokens",
    "cache_write_tokens",
    "output_tokens",
    "usage",
    "cost_usd",
    "cost_reason",
    "cache_neutral_cost_usd",
    "spent_pico",
    "dispatched_at",
    "finished_at",
    "ttft_s",
    "latency_s",
    "queue_wait_s",
    "selected_model",
    "decision",
    "lab",
)
"""Columns that the facts are made of; texts of replies, the bulk of a run, are not among them."""


@dataclass(frozen=True, slots=True)
class CellFact:
    """How one cell (case × target) ended; cells without a fact are pending."""

    case_id: str
    target_id: str
    benchmark: str
    status: str
    """completed | failed | ambiguous"""
    answer_status: str
    strict_format: bool | None
    correct: bool | None
    failure: str | None

    @property
    def right(self) -> bool:
        """Counts as correct: only a completed cell that was graded right."""
        return self.status == "completed" and self.correct is True


@dataclass(frozen=True, slots=True)
class CallFact:
    """One dispatched call; None is unknown. `outcome` None: dispatched, no end known."""

    id: str
    case_id: str
    target_id: str
    benchmark: str
    role: str
    step: int
    attempt: int
    outcome: str | None
    failure: str | None
    model: str | None
    finish_reason: str | None
    tokens: tuple[int, int, int, int] | None
    """Fresh input, cached input, cache write, output."""
    cache_read_reported: bool
    cost_usd: Decimal | None
    cost_reason: str | None
    cache_neutral_cost_usd: Decimal | None
    dispatched_at: float
    finished_at: float | None
    ttft_s: float | None
    latency_s: float | None
    queue_wait_s: float | None
    selected_model: str | None
    decision: str | None
    lab: bool


def cell_facts(rows: Iterable[Mapping[str, Any]]) -> list[CellFact]:
    """Rows with `CELL_COLUMNS` of the journal's `results` table, as facts."""
    return [
        CellFact(
            case_id=row["case_id"],
            target_id=row["target_id"],
            benchmark=row["benchmark"],
            status=row["status"],
            answer_status=row["answer_status"],
            strict_format=row["strict_format"],
            correct=row["correct"],
            failure=row["failure"],
        )
        for row in rows
    ]


def call_facts(rows: Iterable[Mapping[str, Any]], accounting: Mapping[str, CallAccounting]) -> list[CallFact]:
    """Rows with `CALL_COLUMNS` of the journal's `calls` table, as facts.

    `accounting` (by call id) overrides usage and cost where a reconciliation exists.
    """
    return [_call_fact(row, accounting.get(row["id"])) for row in rows]


def _call_fact(row: Mapping[str, Any], corrected: CallAccounting | None) -> CallFact:
    money = corrected or recorded_accounting(row)
    usage = orjson.loads(row["usage"]) if row["usage"] else None
    return CallFact(
        id=row["id"],
        case_id=row["case_id"],
        target_id=row["target_id"],
        benchmark=row["benchmark"],
        role=row["role"],
        step=row["step"],
        attempt=row["attempt"],
        outcome=row["outcome"],
        failure=row["failure"],
        model=row["model"],
        finish_reason=row["finish_reason"],
        tokens=money.tokens,
        cache_read_reported=bool(usage and usage.get("cache_read_reported")),
        cost_usd=money.cost_usd,
        cost_reason=money.cost_reason,
        cache_neutral_cost_usd=money.cache_neutral_cost_usd,
        dispatched_at=row["dispatched_at"],
        finished_at=row["finished_at"],
        ttft_s=row["ttft_s"],
        latency_s=row["latency_s"],
        queue_wait_s=row["queue_wait_s"],
        selected_model=row["selected_model"],
        decision=row["decision"],
        lab=bool(row["lab"]),
    )
