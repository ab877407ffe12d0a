"""What a run's journal knows of each cell, in brief: enough to decide what may be continued or retried."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select

from resources.journal.connection import Journal
from resources.journal.runs import Cell
from resources.journal.schema import calls, results


@dataclass(frozen=True, slots=True)
class CallBrief:
    """How one call of a cell ended."""

    outcome: str | None
    """completed, failed or refused; None: no end known."""
    failure: str | None
    http_status: int | None
    spend_known: bool
    usage_known: bool
    """Whether all four token buckets are known."""


@dataclass(frozen=True, slots=True)
class ResultBrief:
    """How one cell ended."""

    benchmark: str
    status: str
    failure: str | None


def call_briefs(journal: Journal, run_id: str) -> dict[Cell, list[CallBrief]]:
    """All calls of a run by cell, in order of dispatch."""
    c = calls.c
    buckets = (c.input_tokens, c.cached_input_tokens, c.cache_write_tokens, c.output_tokens)
    query = select(c.case_id, c.target_id, c.outcome, c.failure, c.http_status, c.spent_pico, *buckets)
    found: dict[Cell, list[CallBrief]] = {}
    with journal.connect() as connection:
        for row in connection.execute(query.where(c.run_id == run_id).order_by(c.seq)):
            case_id, target_id, outcome, failure, status, spent, *tokens = row
            brief = CallBrief(outcome, failure, status, spent is not None, None not in tokens)
            found.setdefault((case_id, target_id), []).append(brief)
    return found


def result_briefs(journal: Journal, run_id: str) -> dict[Cell, ResultBrief]:
    """All results of a run by cell."""
    c = results.c
    query = select(c.case_id, c.target_id, c.benchmark, c.status, c.failure).where(c.run_id == run_id)
    with journal.connect() as connection:
        return {
            (row.case_id, row.target_id): ResultBrief(row.benchmark, row.status, row.failure)
            for row in connection.execute(query)
        }
