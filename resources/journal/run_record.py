"""A run and its progress as plain records, free of any database library (`sr-bench runs` must be quick)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

import orjson

from resources.journal.money import usd_from_pico

SCHEMA_VERSION = "0001"
"""Revision that this code works with; equal to Alembic's head, which is too slow to ask at every start."""

RunStatus = Literal[
    "queued",
    "running",
    "completed",
    "partial",
    "failed",
    "budget_exhausted",
    "timed_out",
    "cancelled",
    "interrupted",
]
LIVE: tuple[RunStatus, ...] = ("queued", "running")
Cell = tuple[str, str]
"""(case id, target id)"""


@dataclass(frozen=True)
class Run:
    """One execution of a frozen plan."""

    id: str
    plan_sha256: str
    name: str
    mode: str
    profile: str
    status: RunStatus
    reason: str | None
    idempotency_key: str | None
    parent_run_id: str | None
    recovery_mode: str | None
    scope: tuple[Cell, ...] | None
    """Cells of a child run; None means the whole plan."""
    total_cells: int
    budget_usd: Decimal
    reserved_usd: Decimal
    """Reservations of calls in flight."""
    spent_usd: Decimal
    """Known spend."""
    unknown_usd: Decimal
    """Reservations kept for calls whose spend is unknown."""
    created_at: float
    started_at: float | None
    finished_at: float | None
    updated_at: float
    cancel_requested_at: float | None

    @property
    def is_terminal(self) -> bool:
        return self.status not in LIVE


@dataclass(frozen=True)
class Progress:
    """Cells of a run by state; the states add up to `total`."""

    total: int
    completed: int
    failed: int
    ambiguous: int
    running: int
    undispatched: int


def run_from(row: Mapping[str, Any]) -> Run:
    """The run of a row of the `runs` table."""
    fields = dict(row)
    scope = fields.pop("scope")
    for column in ("budget", "reserved", "spent", "unknown"):
        fields[f"{column}_usd"] = usd_from_pico(fields.pop(f"{column}_pico"))
    return Run(scope=None if scope is None else tuple((c, t) for c, t in orjson.loads(scope)), **fields)


def progress_from(run: Run, counts: Mapping[tuple[str, str], int], running: int) -> Progress:
    """Progress of `run` from the numbers of its results by (run id, status) and of its running cells."""
    completed, failed, ambiguous = (
        counts.get((run.id, status), 0) for status in ("completed", "failed", "ambiguous")
    )
    undispatched = max(run.total_cells - completed - failed - ambiguous - running, 0)
    return Progress(run.total_cells, completed, failed, ambiguous, running, undispatched)
