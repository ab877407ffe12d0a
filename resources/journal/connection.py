"""Opening the journal: the database as it is, or brought to the version of this code first."""

from __future__ import annotations

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, OperationalError, ProgrammingError

from resources.journal.engine import Journal, engine_of, unreachable
from resources.journal.run_record import SCHEMA_VERSION
from resources.store import Store

__all__ = ["Journal", "open_journal"]


def open_journal(store: Store) -> Journal:
    """The store's journal, created or migrated if need be (safe when many processes do so at once).

    Raises `Unavailable` if the database cannot be reached, `SrBenchError` if it was written by a newer
    version or its URL is not usable.
    """
    engine = engine_of(store)
    journal = Journal(engine)
    try:
        found = _schema_version(journal)
    except DBAPIError as error:
        raise unreachable(engine, error) from error
    if found != SCHEMA_VERSION:
        from resources.journal.migration import migrate

        migrate(journal, store)
    return journal


def _schema_version(journal: Journal) -> str | None:
    """The revision stamped in the database; None for a new one."""
    try:
        with journal.engine.connect() as connection:
            return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    except (OperationalError, ProgrammingError) as error:
        if "alembic_version" in str(error.orig):
            return None
        raise
