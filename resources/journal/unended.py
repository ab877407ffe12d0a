"""Cells that a dead runner left without a result: each gets the state that its journaled calls prove."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection, Row, and_, func, select, update

from resources.journal.results import ResultRow
from resources.journal.schema import calls, results, runs
from resources.journal.statements import insert_rows

_ROWS = 200


@dataclass(frozen=True)
class Unended:
    """Numbers of cells that were ended."""

    ambiguous: int
    failed: int


def end_cells_of_the_dead(connection: Connection, run: Row[Any], benchmarks: Sequence[str] | None) -> Unended:
    """Within a transaction that holds the run's lock: give a result to each cell of `benchmarks` (None: of
    all) that has calls but no result.

    A call without an end makes its cell ambiguous, and its reservation is kept as unknown spend. If all calls
    have ended the cell failed as interrupted. A cell whose calls were all refused stays undispatched.
    """
    ended = and_(
        results.c.run_id == calls.c.run_id,
        results.c.case_id == calls.c.case_id,
        results.c.target_id == calls.c.target_id,
    )
    query = (
        select(
            calls.c.id,
            calls.c.benchmark,
            calls.c.case_id,
            calls.c.target_id,
            calls.c.role,
            calls.c.outcome,
            calls.c.failure,
            calls.c.reserved_pico,
            calls.c.cost_usd,
            calls.c.latency_s,
        )
        .select_from(calls.outerjoin(results, ended))
        .where(calls.c.run_id == run.id)
        .order_by(calls.c.seq)
    )
    # A call can lack an end although its cell has a result: the runner gave the case up, then died.
    query = query.where(
        (results.c.run_id.is_(None)) | (calls.c.outcome.is_(None) & calls.c.failure.is_(None))
    )
    if benchmarks is not None:
        query = query.where(calls.c.benchmark.in_(benchmarks))
    rows = connection.execute(query.add_columns(results.c.run_id.label("ended"))).all()
    _keep_reservations(connection, run, [row for row in rows if row.outcome is None and row.failure is None])
    cells: dict[tuple[str, str], list[Row[Any]]] = {}
    for row in rows:
        if row.ended is None:
            cells.setdefault((row.case_id, row.target_id), []).append(row)
    found = [result for of_cell in cells.values() if (result := _result_of(of_cell)) is not None]
    _write(connection, run.id, found)
    ambiguous = sum(result.status == "ambiguous" for result in found)
    return Unended(ambiguous, len(found) - ambiguous)


def all_cells_ended(connection: Connection, run: Row[Any]) -> bool:
    """Whether every planned cell has ended as completed or failed, at least one of them completed."""
    query = (
        select(results.c.status, func.count()).where(results.c.run_id == run.id).group_by(results.c.status)
    )
    counts = {row[0]: int(row[1]) for row in connection.execute(query)}
    completed = counts.get("completed", 0)
    return completed > 0 and completed + counts.get("failed", 0) >= run.total_cells


def _keep_reservations(connection: Connection, run: Row[Any], without_end: Sequence[Row[Any]]) -> None:
    if not without_end:
        return
    kept = sum(row.reserved_pico for row in without_end)
    connection.execute(
        update(runs)
        .where(runs.c.id == run.id)
        .values(
            reserved_pico=runs.c.reserved_pico - kept,
            unknown_pico=runs.c.unknown_pico + kept,
            updated_at=time.time(),
        )
    )
    ids = [row.id for row in without_end]
    for start in range(0, len(ids), _ROWS):
        # Outcome stays null, for no end is known; the failure says that none will come.
        connection.execute(
            update(calls).where(calls.c.id.in_(ids[start : start + _ROWS])).values(failure="interrupted")
        )


def _result_of(of_cell: Sequence[Row[Any]]) -> ResultRow | None:
    first = of_cell[0]
    sent = [row for row in of_cell if row.outcome != "refused"]
    if not sent:
        return None
    ambiguous = any(row.outcome is None for row in sent)
    costs = [row.cost_usd for row in sent if row.role == "subject"]
    latencies = [row.latency_s for row in sent if row.role == "subject" and row.latency_s is not None]
    return ResultRow(
        case_id=first.case_id,
        target_id=first.target_id,
        benchmark=first.benchmark,
        status="ambiguous" if ambiguous else "failed",
        failure="interrupted",
        diagnostics={"reason": "the runner died before this case ended"},
        call_count=len(of_cell),
        cost_usd=None if None in costs else sum((Decimal(cost) for cost in costs), Decimal(0)),
        latency_s=sum(latencies) if latencies and not ambiguous else None,
    )


def _write(connection: Connection, run_id: str, found: Sequence[ResultRow]) -> None:
    seq = connection.execute(
        select(func.coalesce(func.max(results.c.seq), 0)).where(results.c.run_id == run_id)
    )
    last = int(seq.scalar_one())
    now = time.time()
    rows = [result.columns(run_id, last + n, now) for n, result in enumerate(found, 1)]
    for start in range(0, len(rows), _ROWS):
        insert_rows(connection, results, rows[start : start + _ROWS])
