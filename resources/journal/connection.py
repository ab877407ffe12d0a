"""Opening the journal: the database as it is, or brought to the version of this code first."""

from __future__ import annotations

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, OperationalError, ProgrammingError

from resources.errors import Unavailable
from resources.journal.engine import Journal, damaged, engine_of, unreachable
from resources.journal.run_record import SCHEMA_VERSION
from resources.store import Store

__all__ = ["Journal", "open_journal"]


def open_journal(store: Store) -> Journal:
    """The store's journal, created or migrated if need be (safe when many processes do so at once).

    Raises `Unavailable` if the database cannot be reached or is damaged, `SrBenchError` if it was written by a newer
    version, its URL is not usable, or the journal of the store's runs is gone.
    """
    engine = engine_of(store)
    journal = Journal(engine)
    try:
        found = _schema_version(journal)
    except DBAPIError as error:
        raise unreachable(engine, error) from error
    if found is None:
        _refuse_lost(journal, store)
    if found != SCHEMA_VERSION:
        from resources.journal.migration import migrate

        migrate(journal, store)
    return journal


def _refuse_lost(journal: Journal, store: Store) -> None:
    """A new journal beside runs of another one would let their requests be sent again."""
    folder = store.root / "runs"
    runs = sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    # Another process may have made the journal, and the runs, since we looked.
    if runs and _schema_version(journal) is None:
        if _has_runs(journal):
            raise damaged(journal.engine, "it does not say which version it has")
        some = ", ".join(runs[:3]) + (f" and {len(runs) - 3} more" if len(runs) > 3 else "")
        raise Unavailable(
            f"the journal is missing or empty, but the store holds runs: {some}",
            code="journal_lost",
            field="store",
            mend="restore journal.sqlite3 from a backup (or set SR_BENCH_DATABASE_URL to the database it lived in); "
            f"to begin anew, move {folder} away",
        )


def _has_runs(journal: Journal) -> bool:
    try:
        with journal.engine.connect() as connection:
            connection.execute(text("SELECT 1 FROM runs LIMIT 1"))
    except DBAPIError:
        return False
    return True


def _schema_version(journal: Journal) -> str | None:
    """The revision stamped in the database; None for a new one."""
    try:
        with journal.engine.connect() as connection:
            return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    except (OperationalError, ProgrammingError) as error:
        if "alembic_version" in str(error.orig):
            return None
        raise
