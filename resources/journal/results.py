"""Results: how each cell (case × target) of a run ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

from sqlalchemy import Row, select

from resources.journal.connection import Journal
from resources.journal.money import decimal_text
from resources.journal.record_text import dump_json, load_json
from resources.journal.schema import results


@dataclass(frozen=True)
class ResultRow:
    """The end of one cell. `seq` and `run_id` are given by the journal."""

    case_id: str
    target_id: str
    benchmark: str
    status: Literal["completed", "failed", "ambiguous"]
    answer: Any = None
    """JSON value."""
    answer_status: str = "not_applicable"
    strict_format: bool | None = None
    correct: bool | None = None
    score: float | None = None
    failure: str | None = None
    diagnostics: Mapping[str, Any] = field(default_factory=dict[str, Any])
    call_count: int = 0
    cost_usd: Decimal | None = None
    """Of all subject calls; None where any of them is unknown."""
    latency_s: float | None = None
    finished_at: float = 0.0
    """Seconds since the epoch; 0 lets the writer stamp it."""
    run_id: str = ""
    seq: int = 0

    def columns(self, run_id: str, seq: int, now: float) -> dict[str, Any]:
        """Values for the `results` table."""
        return {
            "run_id": run_id,
            "case_id": self.case_id,
            "target_id": self.target_id,
            "seq": seq,
            "benchmark": self.benchmark,
            # What an executor gave may be of a kind of its own (numpy's numbers, enumerations): plain values are kept.
            "status": str(self.status),
            "answer": None if self.answer is None else dump_json(self.answer),
            "answer_status": str(self.answer_status),
            "strict_format": None if self.strict_format is None else bool(self.strict_format),
            "correct": None if self.correct is None else bool(self.correct),
            "score": None if self.score is None else float(self.score),
            "failure": None if self.failure is None else str(self.failure),
            "diagnostics": dump_json(dict(self.diagnostics)) if self.diagnostics else None,
            "call_count": self.call_count,
            "cost_usd": decimal_text(self.cost_usd),
            "latency_s": self.latency_s,
            "finished_at": self.finished_at or now,
        }


def list_results(
    journal: Journal,
    run_id: str,
    *,
    after: int | None = None,
    limit: int | None = None,
    benchmark: str | None = None,
    target_id: str | None = None,
) -> list[ResultRow]:
    """Results of a run in the order they came; `after` is the `seq` of the last one already seen."""
    query = select(results).where(results.c.run_id == run_id).order_by(results.c.seq).limit(limit)
    if after is not None:
        query = query.where(results.c.seq > after)
    if benchmark is not None:
        query = query.where(results.c.benchmark == benchmark)
    if target_id is not None:
        query = query.where(results.c.target_id == target_id)
    with journal.connect() as connection:
        return [_result(row) for row in connection.execute(query)]


def _result(row: Row[Any]) -> ResultRow:
    fields = dict(row._mapping)
    fields["answer"] = load_json(row.answer)
    fields["diagnostics"] = load_json(row.diagnostics) or {}
    fields["cost_usd"] = None if row.cost_usd is None else Decimal(row.cost_usd)
    return ResultRow(**fields)
