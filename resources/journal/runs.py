"""Runs: creation under an idempotency key, status, cancellation and events."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import orjson
from sqlalchemy import Connection, Row, insert, select, update

from resources.errors import NotFound, SrBenchError
from resources.journal.connection import Journal
from resources.journal.events import Event, add_event, insert_event, list_events
from resources.journal.money import pico_from_usd
from resources.journal.run_record import LIVE, Cell, Run, RunStatus, run_from
from resources.journal.schema import recovery_claims, run_leases, runs

__all__ = [
    "LIVE",
    "Cell",
    "Event",
    "Run",
    "RunStatus",
    "add_event",
    "claimed_cells",
    "create_run",
    "end_run",
    "finish_run",
    "get_run",
    "list_events",
    "list_runs",
    "lock_run",
    "request_cancel",
    "start_run",
]


def create_run(
    journal: Journal,
    *,
    plan_sha256: str,
    name: str,
    mode: str,
    profile: str,
    total_cells: int,
    budget_usd: Decimal,
    idempotency_key: str | None = None,
    parent_run_id: str | None = None,
    recovery_mode: str | None = None,
    scope: Sequence[Cell] | None = None,
    claims: Sequence[Cell] = (),
) -> tuple[Run, bool]:
    """A new queued run and True, or the run that `idempotency_key` already stands for and False.

    `claims` are the cells of the parent that this child takes over; a cell can be taken by one child only.
    Raises `SrBenchError` if the key stands for something else or a claim is taken. Nothing is written then.
    """
    wanted = {
        "plan_sha256": plan_sha256,
        "mode": mode,
        "parent_run_id": parent_run_id,
        "recovery_mode": recovery_mode,
        "scope": None if scope is None else orjson.dumps([list(cell) for cell in scope]).decode(),
    }
    now = time.time()
    run_id = secrets.token_hex(6)
    row = {
        **wanted,
        "id": run_id,
        "name": name,
        "profile": profile,
        "status": "queued",
        "idempotency_key": idempotency_key,
        "total_cells": total_cells,
        "budget_pico": pico_from_usd(budget_usd),
        "reserved_pico": 0,
        "spent_pico": 0,
        "unknown_pico": 0,
        "created_at": now,
        "updated_at": now,
    }
    with journal.begin() as connection:
        if parent_run_id is not None:
            lock_run(connection, parent_run_id)  # children that claim cells of one parent take turns
        if not _insert_new(connection, journal.dialect, row):
            earlier = connection.execute(select(runs).where(runs.c.idempotency_key == idempotency_key)).one()
            _check_same_request(earlier, wanted)
            return _run(earlier), False
        if parent_run_id is not None and claims:
            _claim(connection, parent_run_id, run_id, claims)
        return _run(connection.execute(select(runs).where(runs.c.id == run_id)).one()), True


def get_run(journal: Journal, run_id: str) -> Run:
    """The run with that id or unique prefix of an id. Raises `NotFound`, or `SrBenchError` if ambiguous."""
    with journal.connect() as connection:
        exact = connection.execute(select(runs).where(runs.c.id == run_id)).one_or_none()
        if exact is not None:
            return _run(exact)
        found = (
            connection.execute(
                select(runs).where(runs.c.id.startswith(run_id, autoescape=True)).order_by(runs.c.id).limit(5)
            ).all()
            if run_id
            else []
        )
    if not found:
        raise NotFound(f"no run {run_id!r}", field="run_id", mend="list runs with `sr-bench runs`")
    if len(found) > 1:
        ids = ", ".join(row.id for row in found)
        raise SrBenchError(
            f"{run_id!r} fits several runs: {ids}", field="run_id", mend="write more of the id"
        )
    return _run(found[0])


def find_run_by_key(journal: Journal, idempotency_key: str) -> Run | None:
    """The run that an idempotency key stands for; None if it stands for none yet."""
    with journal.connect() as connection:
        row = connection.execute(select(runs).where(runs.c.idempotency_key == idempotency_key)).one_or_none()
    return None if row is None else _run(row)


def list_runs(
    journal: Journal,
    *,
    limit: int | None = None,
    statuses: Sequence[RunStatus] | None = None,
    plan_sha256: str | None = None,
    parent_run_id: str | None = None,
) -> list[Run]:
    """Runs, newest first."""
    query = select(runs).order_by(runs.c.created_at.desc(), runs.c.id).limit(limit)
    if statuses is not None:
        query = query.where(runs.c.status.in_(statuses))
    if plan_sha256 is not None:
        query = query.where(runs.c.plan_sha256 == plan_sha256)
    if parent_run_id is not None:
        query = query.where(runs.c.parent_run_id == parent_run_id)
    with journal.connect() as connection:
        return [_run(row) for row in connection.execute(query)]


def start_run(journal: Journal, run_id: str) -> Run:
    """Mark a queued run as running (a running one stays so). Raises `SrBenchError` if it has ended."""
    with journal.begin() as connection:
        row = lock_run(connection, run_id)
        if row.status not in LIVE:
            raise SrBenchError(
                f"run {run_id} has ended as {row.status}",
                code="run_ended",
                field="run_id",
                mend="start a new run, or continue its undispatched cells with `sr-bench recover-plan`",
            )
        now = time.time()
        connection.execute(
            update(runs)
            .where(runs.c.id == run_id)
            .values(status="running", started_at=row.started_at or now, updated_at=now)
        )
        return _run(lock_run(connection, run_id))


def finish_run(journal: Journal, run_id: str, status: RunStatus, reason: str | None = None) -> Run:
    """End a run and give back its leases. The first end stands: ending an ended run changes nothing."""
    if status in LIVE:
        raise ValueError(f"{status} is no end")
    with journal.begin() as connection:
        if lock_run(connection, run_id).status in LIVE:
            end_run(connection, run_id, status, reason)
        return _run(lock_run(connection, run_id))


def request_cancel(journal: Journal, run_id: str) -> Run:
    """Ask a live run to stop; its runner ends it. A queued run that no runner has taken ends at once."""
    with journal.begin() as connection:
        row = lock_run(connection, run_id)
        if row.status in LIVE and row.cancel_requested_at is None:
            now = time.time()
            connection.execute(
                update(runs).where(runs.c.id == run_id).values(cancel_requested_at=now, updated_at=now)
            )
            insert_event(connection, run_id, "cancel_requested", "cancellation was requested", None)
        held = connection.execute(
            select(run_leases.c.pid).where(run_leases.c.run_id == run_id).limit(1)
        ).first()
        if row.status == "queued" and held is None:
            end_run(connection, run_id, "cancelled", "cancelled before a runner took it")
        return _run(lock_run(connection, run_id))


def claimed_cells(journal: Journal, parent_run_id: str) -> dict[Cell, str]:
    """Cells of `parent_run_id` that child runs took over → the child's id."""
    claims = recovery_claims.c
    query = select(claims.case_id, claims.target_id, claims.child_run_id)
    with journal.connect() as connection:
        rows = connection.execute(query.where(claims.parent_run_id == parent_run_id))
        return {(row.case_id, row.target_id): row.child_run_id for row in rows}


def lock_run(connection: Connection, run_id: str) -> Row[Any]:
    """The run's row, locked until the transaction ends. Raises `NotFound`."""
    row = connection.execute(
        select(runs).where(runs.c.id == run_id).with_for_update(key_share=True)
    ).one_or_none()
    if row is None:
        raise NotFound(f"no run {run_id!r}", field="run_id", mend="list runs with `sr-bench runs`")
    return row


def end_run(connection: Connection, run_id: str, status: RunStatus, reason: str | None) -> None:
    """Within a transaction that holds the run's lock: end it, release its leases, tell it as an event."""
    now = time.time()
    connection.execute(
        update(runs)
        .where(runs.c.id == run_id)
        .values(status=status, reason=reason, finished_at=now, updated_at=now)
    )
    connection.execute(
        update(run_leases)
        .where(run_leases.c.run_id == run_id, run_leases.c.released_at.is_(None))
        .values(released_at=now)
    )
    insert_event(connection, run_id, "ended", f"{status}: {reason}" if reason else status, {"status": status})


def _insert_new(connection: Connection, dialect: str, row: Mapping[str, Any]) -> bool:
    """Insert the run; False if its idempotency key is taken. Of two simultaneous inserts the second waits."""
    if dialect == "postgresql":
        from sqlalchemy.dialects.postgresql import insert as upsert
    else:
        from sqlalchemy.dialects.sqlite import insert as upsert
    statement = upsert(runs).on_conflict_do_nothing(index_elements=[runs.c.idempotency_key])
    return connection.execute(statement.values(**row).returning(runs.c.id)).first() is not None


def _check_same_request(earlier: Row[Any], wanted: Mapping[str, Any]) -> None:
    differing = [field for field, value in wanted.items() if getattr(earlier, field) != value]
    if differing:
        raise SrBenchError(
            f"the idempotency key already stands for run {earlier.id} with another {', '.join(differing)}",
            code="idempotency_conflict",
            field="idempotency_key",
            mend="use a new key for a different plan",
        )


def _claim(connection: Connection, parent_run_id: str, child_run_id: str, cells: Sequence[Cell]) -> None:
    claims = recovery_claims.c
    query = select(claims.case_id, claims.target_id).where(claims.parent_run_id == parent_run_id)
    taken = {(row.case_id, row.target_id) for row in connection.execute(query)}.intersection(cells)
    if taken:
        raise SrBenchError(
            f"{len(taken)} of {len(cells)} cells of run {parent_run_id} belong to another recovery already",
            code="already_claimed",
            field="plan",
            mend="make a new recovery plan; it leaves out what is claimed",
        )
    rows = [
        {"parent_run_id": parent_run_id, "case_id": case, "target_id": target, "child_run_id": child_run_id}
        for case, target in cells
    ]
    connection.execute(insert(recovery_claims), rows)


def _run(row: Row[Any]) -> Run:
    return run_from(row._asdict())
