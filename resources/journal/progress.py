"""How far a run is and what it has spent, counted from the journal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from sqlalchemy import Connection, func, select

from resources.journal.connection import Journal
from resources.journal.money import usd_from_pico
from resources.journal.run_record import LIVE, Progress, Run, progress_from
from resources.journal.runs import get_run
from resources.journal.schema import calls, results

__all__ = ["PartProgress", "Progress", "progress", "progress_by", "progress_of"]


@dataclass(frozen=True)
class PartProgress:
    """Cells of one benchmark and target that have begun, and their spend. The plan knows the rest."""

    completed: int
    failed: int
    ambiguous: int
    running: int
    calls: int
    spent_usd: Decimal
    """Known spend, of judge and simulator calls too."""
    unknown_spend_calls: int
    """Calls that have ended (or were lost) at a cost that is not known, and calls in flight."""


def progress(journal: Journal, run_id: str) -> Progress:
    """Progress of one run. Raises `NotFound`."""
    return progress_of(journal, [get_run(journal, run_id)])[run_id]


def progress_of(journal: Journal, found: Sequence[Run]) -> dict[str, Progress]:
    """Progress of several runs by id."""
    ids = [run.id for run in found]
    with journal.connect() as connection:
        rows = connection.execute(
            select(results.c.run_id, results.c.status, func.count())
            .where(results.c.run_id.in_(ids))
            .group_by(results.c.run_id, results.c.status)
        )
        counts = {(run_id, status): int(count) for run_id, status, count in rows}
        running = {run.id: _running(connection, run.id) for run in found if run.status in LIVE}
    return {run.id: progress_from(run, counts, sum(running.get(run.id, {}).values())) for run in found}


def progress_by(journal: Journal, run_id: str) -> dict[tuple[str, str], PartProgress]:
    """Progress of one run by (benchmark, target id)."""
    run = get_run(journal, run_id)
    with journal.connect() as connection:
        ended = connection.execute(
            select(results.c.benchmark, results.c.target_id, results.c.status, func.count())
            .where(results.c.run_id == run.id)
            .group_by(results.c.benchmark, results.c.target_id, results.c.status)
        )
        counts = {(benchmark, target, status): int(count) for benchmark, target, status, count in ended}
        spends = connection.execute(
            select(
                calls.c.benchmark,
                calls.c.target_id,
                func.count(),
                func.count(calls.c.spent_pico),
                func.sum(calls.c.spent_pico),
            )
            .where(calls.c.run_id == run.id)
            .group_by(calls.c.benchmark, calls.c.target_id)
        ).all()
        running = _running(connection, run.id) if run.status in LIVE else {}
    spend = {(row[0], row[1]): (int(row[2]), int(row[3]), int(row[4] or 0)) for row in spends}
    parts = {(benchmark, target) for benchmark, target, _ in counts} | set(spend)
    return {
        part: _part(part, counts, running.get(part, 0), spend.get(part, (0, 0, 0))) for part in sorted(parts)
    }


def _part(
    part: tuple[str, str],
    counts: dict[tuple[str, str, str], int],
    running: int,
    spend: tuple[int, int, int],
) -> PartProgress:
    completed, failed, ambiguous = (
        counts.get((*part, status), 0) for status in ("completed", "failed", "ambiguous")
    )
    sent, known, pico = spend
    return PartProgress(completed, failed, ambiguous, running, sent, usd_from_pico(pico), sent - known)


def _running(connection: Connection, run_id: str) -> dict[tuple[str, str], int]:
    """Cells with a call but no result, by (benchmark, target id)."""
    # A set difference, not an outer join: fast also where the database has no statistics of a young run yet.
    begun, ended = (
        select(table.c.benchmark, table.c.target_id, table.c.case_id).where(table.c.run_id == run_id)
        for table in (calls, results)
    )
    open_cells = begun.except_(ended).subquery()
    query = select(open_cells.c.benchmark, open_cells.c.target_id, func.count()).group_by(
        open_cells.c.benchmark, open_cells.c.target_id
    )
    return {(benchmark, target): int(count) for benchmark, target, count in connection.execute(query)}
