"""The list of ended runs, read by the standard library alone.

Importing SQLAlchemy costs 0.2 s, two thirds of what `sr-bench runs` may take. For the common case (SQLite, nothing
at work, so nothing to reconcile) two plain queries say the same as `list_runs` and `progress_of`.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing

from resources.journal.run_record import LIVE, SCHEMA_VERSION, Progress, Run, progress_from, run_from
from resources.store import Store


def ended_runs(store: Store, limit: int | None = None) -> list[tuple[Run, Progress]] | None:
    """Runs, newest first, with their progress; None where only the journal proper can tell: on PostgreSQL, with
    another schema version, or while any run is queued or running."""
    if not store.database_url.startswith("sqlite") or not store.journal_path.is_file():
        return None
    try:
        with closing(sqlite3.connect(f"{store.journal_path.as_uri()}?mode=ro", uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            if connection.execute("SELECT version_num FROM alembic_version").fetchone()[0] != SCHEMA_VERSION:
                return None
            return _read(connection, limit)
    except (sqlite3.Error, TypeError):
        return None  # opening the journal proper tells what is wrong


def _read(connection: sqlite3.Connection, limit: int | None) -> list[tuple[Run, Progress]] | None:
    connection.execute("BEGIN")  # both queries see one state
    if connection.execute("SELECT 1 FROM runs WHERE status IN (?, ?) LIMIT 1", LIVE).fetchone():
        return None
    bound = -1 if limit is None else limit
    runs = connection.execute("SELECT * FROM runs ORDER BY created_at DESC, id LIMIT ?", (bound,))
    found = [run_from(dict(row)) for row in runs]
    counted = connection.execute(
        "SELECT run_id, status, count(*) FROM results WHERE run_id IN "
        "(SELECT id FROM runs ORDER BY created_at DESC, id LIMIT ?) GROUP BY run_id, status",
        (bound,),
    )
    counts = {(run_id, status): count for run_id, status, count in counted}
    return [(run, progress_from(run, counts, 0)) for run in found]
