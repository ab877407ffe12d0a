"""Ending a run in the journal: by the runner that leaves last, in one transaction with its leases."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import cast

from sqlalchemy import Connection, Row, func, select, update

from resources.journal.connection import Journal
from resources.journal.leases import Lease
from resources.journal.patience import patiently
from resources.journal.record_text import load_json
from resources.journal.runs import LIVE, RunStatus, end_run, lock_run
from resources.journal.schema import results, run_leases
from resources.journal.unended import end_cells_of_the_dead
from sr_bench_assets.plans.manifest import FrozenPlan
from sr_bench_assets.results.conclusion import CellCounts, Stop, concluded
from sr_bench_assets.results.scope import RunScopeCells, partitions_of


def conclude_run(
    journal: Journal,
    plan: FrozenPlan,
    run_id: str,
    leases: Sequence[Lease],
    stop: Stop | None,
    unsent: Sequence[str] = (),
) -> RunStatus:
    """Give back `leases`; if no other runner is at work on the run, end it. Returns the run's status now.

    A run that was not stopped goes on while partitions of it have had no runner yet (they may be launched on
    other machines). Of two runners that leave at once, the second one ends the run. An outage of the database is
    waited for, a full disk too: cells that have all ended are no failed run. `unsent` says why cells were not sent.
    """
    return patiently(lambda: _conclude(journal, plan, run_id, leases, stop, unsent), full_disk=True)


def _conclude(
    journal: Journal,
    plan: FrozenPlan,
    run_id: str,
    leases: Sequence[Lease],
    stop: Stop | None,
    unsent: Sequence[str],
) -> RunStatus:
    with journal.begin() as connection:
        run = lock_run(connection, run_id)
        for lease in leases:
            connection.execute(
                update(run_leases)
                .where(run_leases.c.run_id == run_id, run_leases.c.partition == lease.partition)
                .where(run_leases.c.pid == lease.holder.pid, run_leases.c.pid_started == lease.holder.started)
                .where(run_leases.c.host == lease.holder.host, run_leases.c.released_at.is_(None))
                .values(released_at=time.time())
            )
        if run.status not in LIVE:
            return run.status
        held = connection.execute(select(run_leases).where(run_leases.c.run_id == run_id)).all()
        if any(lease.released_at is None for lease in held):
            return run.status
        planned = partitions_of(plan, RunScopeCells.parse(load_json(run.scope)))
        if stop is None and not {lease.partition for lease in held}.issuperset(planned):
            return run.status
        # Normally there are none; where the runner broke before it could write a result, its calls tell.
        end_cells_of_the_dead(connection, run, None)
        status, reason = concluded(_counts(connection, run), stop, unsent)
        end_run(connection, run_id, cast("RunStatus", status), reason)
        return cast("RunStatus", status)


def cells_without_result(journal: Journal, run_id: str, benchmark: str, planned: int) -> int:
    """How many of the `planned` cells of a partition have no result."""
    query = select(func.count()).where(results.c.run_id == run_id, results.c.benchmark == benchmark)
    with journal.connect() as connection:
        return planned - int(connection.execute(query).scalar_one())


def _counts(connection: Connection, run: Row[tuple[object, ...]]) -> CellCounts:
    query = select(results.c.status, func.count()).where(results.c.run_id == run.id)
    rows = connection.execute(query.group_by(results.c.status))
    found: dict[str, int] = {row[0]: int(row[1]) for row in rows}
    return CellCounts(
        run.total_cells, found.get("completed", 0), found.get("failed", 0), found.get("ambiguous", 0)
    )
