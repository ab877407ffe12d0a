"""Seals: content hashes of the artifacts made for a run, by partition, kind and version."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import Row, insert, select

from resources.journal.connection import Journal
from resources.journal.patience import patiently
from resources.journal.runs import lock_run
from resources.journal.schema import seals


@dataclass(frozen=True)
class Seal:
    """One sealed artifact."""

    run_id: str
    partition: str
    kind: str
    """results | calls | evidence | accounting | report …"""
    version: int
    """From 1."""
    sha256: str
    created_at: float
    data: dict[str, Any]


def add_seal(
    journal: Journal,
    run_id: str,
    partition: str,
    kind: str,
    sha256: str,
    data: Mapping[str, Any] | None = None,
) -> Seal:
    """Record an artifact as the next version of its kind; the newest one stands if it has the same hash.

    An outage of the database is waited for.
    """
    return patiently(lambda: _add(journal, run_id, partition, kind, sha256, data))


def _add(
    journal: Journal,
    run_id: str,
    partition: str,
    kind: str,
    sha256: str,
    data: Mapping[str, Any] | None,
) -> Seal:
    with journal.begin() as connection:
        lock_run(connection, run_id)  # versions are counted by one process at a time
        newest = connection.execute(_newest_first(run_id, partition, kind).limit(1)).one_or_none()
        if newest is not None and newest.sha256 == sha256:
            return _seal(newest)
        connection.execute(
            insert(seals).values(
                run_id=run_id,
                partition=partition,
                kind=kind,
                version=1 if newest is None else newest.version + 1,
                sha256=sha256,
                created_at=time.time(),
                data=None if data is None else orjson.dumps(dict(data)).decode(),
            )
        )
        return _seal(connection.execute(_newest_first(run_id, partition, kind).limit(1)).one())


def get_seal(
    journal: Journal, run_id: str, partition: str, kind: str, *, version: int | None = None
) -> Seal | None:
    """The newest (or that) version of an artifact; None if it was never sealed."""
    query = _newest_first(run_id, partition, kind).limit(1)
    if version is not None:
        query = query.where(seals.c.version == version)
    with journal.connect() as connection:
        row = connection.execute(query).one_or_none()
    return None if row is None else _seal(row)


def list_seals(journal: Journal, run_id: str, *, kind: str | None = None) -> list[Seal]:
    """All seals of a run, by partition, kind and version."""
    query = select(seals).where(seals.c.run_id == run_id)
    if kind is not None:
        query = query.where(seals.c.kind == kind)
    with journal.connect() as connection:
        rows = connection.execute(query.order_by(seals.c.partition, seals.c.kind, seals.c.version))
        return [_seal(row) for row in rows]


def _newest_first(run_id: str, partition: str, kind: str) -> Any:
    return (
        select(seals)
        .where(seals.c.run_id == run_id, seals.c.partition == partition, seals.c.kind == kind)
        .order_by(seals.c.version.desc())
    )


def _seal(row: Row[Any]) -> Seal:
    fields = dict(row._mapping)
    fields["data"] = orjson.loads(row.data) if row.data else {}
    return Seal(**fields)
