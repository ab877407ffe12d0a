"""Leases: one live runner for each partition (benchmark) of a run; reconciliation of those that died."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from resources.errors import SrBenchError
from resources.journal.connection import Journal
from resources.journal.processes import ProcessIdentity, process_alive, this_process
from resources.journal.runs import LIVE, RunStatus, end_run, lock_run
from resources.journal.schema import run_leases, runs
from resources.journal.unended import Unended, all_cells_ended, end_cells_of_the_dead

__all__ = ["DeadRun", "Lease", "acquire_lease", "process_alive", "reconcile_dead_runs", "release_lease"]

HEARTBEAT_S = 10.0
STALE_S = 120.0
"""A lease from another host without a heartbeat for this long is that of a dead runner."""


@dataclass(frozen=True)
class Lease:
    """The right to run one partition of a run, held by this process."""

    run_id: str
    partition: str
    holder: ProcessIdentity


@dataclass(frozen=True)
class DeadRun:
    """What reconciliation found of a run whose runner (or one of whose runners) died."""

    run_id: str
    partitions: tuple[str, ...]
    ambiguous: int
    """Cells with a call without a known end."""
    failed: int
    """Cells whose calls all have ended but which were not graded."""
    status: RunStatus
    """Of the run now: `running` if other runners live."""


def acquire_lease(
    journal: Journal, run_id: str, partition: str, *, dagster_run_id: str | None = None
) -> Lease:
    """Take the lease of `partition`, or keep it if this process holds it.

    Raises `SrBenchError` if a live process holds it or the run has ended; if its holder died, the run is
    reconciled first and has then ended as interrupted.
    """
    holder = this_process()
    _reconcile(journal, run_id)  # in a transaction of its own: it stands even if this runner is refused
    with journal.begin() as connection:
        run = lock_run(connection, run_id)
        row = connection.execute(
            select(run_leases).where(run_leases.c.run_id == run_id, run_leases.c.partition == partition)
        ).one_or_none()
        _check_free(run, partition, row, holder)
        now = time.time()
        values = {
            "pid": holder.pid,
            "pid_started": holder.started,
            "host": holder.host,
            "dagster_run_id": dagster_run_id,
            "acquired_at": now,
            "heartbeat_at": now,
            "released_at": None,
        }
        changed = connection.execute(
            update(run_leases)
            .where(run_leases.c.run_id == run_id, run_leases.c.partition == partition)
            .values(**values)
        )
        if changed.rowcount == 0:
            connection.execute(insert(run_leases).values(run_id=run_id, partition=partition, **values))
    return Lease(run_id, partition, holder)


def release_lease(journal: Journal, lease: Lease) -> None:
    """Give a lease back; one that this process no longer holds is left alone."""
    with journal.begin() as connection:
        connection.execute(
            update(run_leases)
            .where(run_leases.c.run_id == lease.run_id, run_leases.c.partition == lease.partition)
            .where(*_held_by(lease.holder))
            .values(released_at=time.time())
        )


def beat(journal: Journal, run_id: str) -> None:
    """Tell other hosts that the leases of this process are alive."""
    with journal.begin() as connection:
        connection.execute(
            update(run_leases)
            .where(run_leases.c.run_id == run_id, *_held_by(this_process()))
            .values(heartbeat_at=time.time())
        )


def live_runner(journal: Journal, run_id: str) -> ProcessIdentity | None:
    """A process that holds a lease of the run and is not known to be dead."""
    query = select(run_leases).where(run_leases.c.run_id == run_id, run_leases.c.released_at.is_(None))
    with journal.connect() as connection:
        rows = connection.execute(query).all()
    for row in rows:
        if not _is_dead(row):
            return ProcessIdentity(row.pid, row.pid_started, row.host)
    return None


def reconcile_dead_runs(journal: Journal) -> list[DeadRun]:
    """End what dead runners left open: each of their cells gets the state that its calls prove.

    Safe to repeat and to run in several processes at once. A read-only look comes first, so that a start with
    nothing to mend writes nothing.
    """
    query = select(run_leases).join(runs, runs.c.id == run_leases.c.run_id)
    with journal.connect() as connection:
        leases = connection.execute(
            query.where(run_leases.c.released_at.is_(None), runs.c.status.in_(LIVE))
        ).all()
    dead = (_reconcile(journal, run_id) for run_id in sorted({row.run_id for row in leases if _is_dead(row)}))
    return [run for run in dead if run is not None]


def _reconcile(journal: Journal, run_id: str) -> DeadRun | None:
    with journal.begin() as connection:
        return _reconcile_locked(connection, run_id)


def _reconcile_locked(connection: Connection, run_id: str) -> DeadRun | None:
    run = lock_run(connection, run_id)
    leases = connection.execute(
        select(run_leases).where(run_leases.c.run_id == run_id, run_leases.c.released_at.is_(None))
    ).all()
    dead = [row for row in leases if _is_dead(row)]
    if run.status not in LIVE or not dead:
        return None
    partitions = tuple(sorted(row.partition for row in dead))
    others_live = len(dead) < len(leases)
    unended = end_cells_of_the_dead(connection, run, partitions if others_live else None)
    connection.execute(
        update(run_leases)
        .where(run_leases.c.run_id == run_id, run_leases.c.partition.in_(partitions))
        .values(released_at=time.time())
    )
    status: RunStatus = run.status
    if not others_live:
        status, reason = _end_of(connection, run, unended, dead)
        end_run(connection, run_id, status, reason)
    return DeadRun(run_id, partitions, unended.ambiguous, unended.failed, status)


def _end_of(
    connection: Connection, run: Row[Any], unended: Unended, dead: Sequence[Row[Any]]
) -> tuple[RunStatus, str]:
    died = f"its runner (pid {dead[0].pid}) died"
    if unended.ambiguous == 0 and unended.failed == 0 and all_cells_ended(connection, run):
        return "completed", f"{died} after the last case had ended"
    if run.cancel_requested_at is not None:
        return "cancelled", f"{died} while it was being cancelled"
    return "interrupted", died


def _check_free(run: Row[Any], partition: str, row: Row[Any] | None, holder: ProcessIdentity) -> None:
    if run.status not in LIVE:
        raise SrBenchError(
            f"run {run.id} has ended as {run.status}",
            code="run_ended",
            field="run_id",
            mend="start a new run, or continue its undispatched cells with `sr-bench recover-plan`",
        )
    if row is not None and row.released_at is None and not _is_mine(row, holder):
        raise SrBenchError(
            f"another runner (pid {row.pid} on {row.host}) is at work on {partition} of run {run.id}",
            code="run_active",
            field="run_id",
            mend=f"wait for it, or cancel it with `sr-bench cancel {run.id}`",
        )


def _is_mine(row: Row[Any], holder: ProcessIdentity) -> bool:
    return (row.pid, row.pid_started, row.host) == (holder.pid, holder.started, holder.host)


def _held_by(holder: ProcessIdentity) -> tuple[Any, ...]:
    return (
        run_leases.c.pid == holder.pid,
        run_leases.c.pid_started == holder.started,
        run_leases.c.host == holder.host,
        run_leases.c.released_at.is_(None),
    )


def _is_dead(row: Row[Any]) -> bool:
    alive = process_alive(row.pid, row.pid_started, row.host)
    return time.time() - row.heartbeat_at > STALE_S if alive is None else not alive
