"""Events: what is worth telling about a run, in order."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import Connection, insert, select

from resources.journal.connection import Journal
from resources.journal.schema import events


@dataclass(frozen=True)
class Event:
    """Something worth telling about a run."""

    id: int
    run_id: str
    at: float
    kind: str
    message: str
    data: dict[str, Any] | None


def add_event(
    journal: Journal, run_id: str, kind: str, message: str, data: Mapping[str, Any] | None = None
) -> None:
    """Journal something worth telling about a run."""
    with journal.begin() as connection:
        insert_event(connection, run_id, kind, message, data)


def list_events(journal: Journal, run_id: str, *, after: int | None = None, limit: int = 1000) -> list[Event]:
    """Events of a run in order; `after` is the id of the last one already seen."""
    query = select(events).where(events.c.run_id == run_id).order_by(events.c.id).limit(limit)
    if after is not None:
        query = query.where(events.c.id > after)
    with journal.connect() as connection:
        return [
            Event(
                row.id,
                row.run_id,
                row.at,
                row.kind,
                row.message,
                orjson.loads(row.data) if row.data else None,
            )
            for row in connection.execute(query)
        ]


def insert_event(
    connection: Connection, run_id: str, kind: str, message: str, data: Mapping[str, Any] | None
) -> None:
    """As `add_event`, within a transaction."""
    text = None if data is None else orjson.dumps(data).decode()
    connection.execute(
        insert(events).values(run_id=run_id, at=time.time(), kind=kind, message=message, data=text)
    )
