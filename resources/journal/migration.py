"""Bringing a journal's tables to the version of this code (Alembic is imported here only: it costs time)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from filelock import FileLock
from sqlalchemy import Connection, text

from resources.errors import SrBenchError
from resources.journal.engine import Journal, create_sqlite_file
from resources.store import Store

_ADVISORY_LOCK = 7_305_816_102_293_417  # an arbitrary number that only our migrations lock


def alembic_config(connection: Connection | None = None) -> Config:
    """Alembic's configuration for our migrations, run over `connection`."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    return config


def migrate(journal: Journal, store: Store) -> None:
    """Upgrade to the newest revision; of several processes one does it and the others wait.

    The upgrade is one transaction, so a crash leaves the version that was there. Raises `SrBenchError` if the
    journal was written by a newer version.
    """
    with _exclusive(journal, store), journal.begin() as connection:
        if journal.dialect == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK})
        config = alembic_config(connection)
        found = MigrationContext.configure(connection).get_current_revision()
        known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
        if found is not None and found not in known:
            raise SrBenchError(
                f"the journal was written by a newer sr-bench (schema {found})",
                code="journal_too_new",
                field="store",
                mend="upgrade sr-bench, or use another store",
            )
        command.upgrade(config, "head")


@contextmanager
def _exclusive(journal: Journal, store: Store) -> Iterator[None]:
    if journal.dialect != "sqlite":
        yield
        return
    with FileLock(store.root / ".journal.lock", mode=0o600):
        create_sqlite_file(store)
        yield
