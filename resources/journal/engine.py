"""The journal's database: SQLite in the store by default, PostgreSQL where `SR_BENCH_DATABASE_URL` names one."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, create_engine, event
from sqlalchemy.engine import Engine, make_url
from sqlalchemy.exc import ArgumentError, DatabaseError, DBAPIError, NoSuchModuleError, OperationalError

from resources.errors import SrBenchError, Unavailable
from resources.store import Store

_BUSY_TIMEOUT_MS = 60_000
_WRITE_OPTION = "sr_bench_write"
_DAMAGED = ("malformed", "not a database", "no such table", "no such column", "already exists")
"""What SQLite says of a file that is no journal (any more)."""
HOPELESS = frozenset({"disk_full", "journal_damaged"})
"""Codes of errors that do not pass by themselves in a moment."""


@dataclass(frozen=True)
class Journal:
    """An open journal. Reads see one consistent snapshot; a write transaction is durable once it returns."""

    engine: Engine

    @property
    def dialect(self) -> str:
        """`sqlite` or `postgresql`."""
        return self.engine.dialect.name

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        """A write transaction: committed (fsync) on leaving, rolled back on an exception.

        On SQLite it holds the only write lock from the start (BEGIN IMMEDIATE), so that nothing read in it
        can be changed by another process; on PostgreSQL take row locks where that matters.
        """
        with (
            _readable_errors(self.engine),
            self.engine.connect().execution_options(**{_WRITE_OPTION: True}) as connection,
            connection.begin(),
        ):
            yield connection

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        """A connection for reading."""
        with _readable_errors(self.engine), self.engine.connect() as connection:
            yield connection

    def close(self) -> None:
        """Close pooled connections. A journal left open is no harm; files can be removed after this."""
        self.engine.dispose()


def unreachable(engine: Engine, error: DBAPIError) -> SrBenchError:
    """`error` of the database as an error for people, without the URL's password."""
    cause = str(error.orig).strip().splitlines()[0] if error.orig else type(error).__name__
    if "full" in cause or "No space" in cause:
        return Unavailable(
            f"no space left for the journal: {cause}",
            code="disk_full",
            field="store",
            mend="free space on the disk of the journal, then repeat",
        )
    if engine.dialect.name == "sqlite" and any(mark in cause for mark in _DAMAGED):
        return damaged(engine, cause)
    place = (
        engine.url.database if engine.dialect.name == "sqlite" else f"{engine.url.host}/{engine.url.database}"
    )
    return Unavailable(
        f"the journal {place} cannot be used: {cause}",
        code="journal_unavailable",
        field="store" if engine.dialect.name == "sqlite" else "SR_BENCH_DATABASE_URL",
        mend="check that it exists, that you may write to it and that nothing holds it locked",
    )


def damaged(engine: Engine, cause: str) -> SrBenchError:
    """The error for a database that is there and is no sound journal."""
    return Unavailable(
        f"the journal {engine.url.database} is damaged: {cause}",
        code="journal_damaged",
        field="store",
        mend="keep it as it is, then restore it from a backup or save what is readable (SQLite: "
        "`sqlite3 journal.sqlite3 .recover`); the evidence of runs lies in the store's runs/",
    )


@contextmanager
def _readable_errors(engine: Engine) -> Iterator[None]:
    try:
        yield
    except DatabaseError as error:
        # Its other kinds (a broken constraint, wrong SQL) are for the program, not for people.
        if type(error) in (OperationalError, DatabaseError):
            raise unreachable(engine, error) from error
        raise


def engine_of(store: Store) -> Engine:
    """A new engine for the store's journal. Raises `SrBenchError` if its URL is not usable."""
    try:
        url = make_url(store.database_url)
        if url.get_backend_name() == "sqlite":
            return _sqlite_engine(store.database_url)
        if url.get_backend_name() != "postgresql":
            raise SrBenchError(
                f"the journal cannot live in {url.get_backend_name()!r}",
                field="SR_BENCH_DATABASE_URL",
                mend="use a postgresql:// URL, or unset it for SQLite in the store",
            )
        return create_engine(url, pool_pre_ping=True, pool_size=4, max_overflow=16)
    except (ArgumentError, NoSuchModuleError) as error:
        raise SrBenchError(
            "SR_BENCH_DATABASE_URL is not a database URL",
            field="SR_BENCH_DATABASE_URL",
            mend="write it as postgresql://user:password@host:5432/database",
        ) from error
    except ImportError as error:
        raise SrBenchError(
            "PostgreSQL needs a driver that is not installed",
            field="SR_BENCH_DATABASE_URL",
            mend="install sr-bench with the extra `postgres`",
        ) from error


def _sqlite_engine(url: str) -> Engine:
    # isolation_level None: the driver opens no transactions of its own, the "begin" event below does.
    engine = create_engine(url, connect_args={"isolation_level": None, "timeout": _BUSY_TIMEOUT_MS / 1000})

    @event.listens_for(engine, "connect")
    def _configure(connection: Any, _record: Any) -> None:
        cursor = connection.cursor()
        for pragma in ("synchronous=FULL", "foreign_keys=ON", "wal_autocheckpoint=4000", "cache_size=-16000"):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        write = connection.get_execution_options().get(_WRITE_OPTION)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

    return engine


def create_sqlite_file(store: Store) -> None:
    """Make the journal's file, owner-only and in WAL mode (both are kept by the file), if it is not there."""
    import sqlite3

    path = store.journal_path
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    path.chmod(0o600)
    deadline = time.monotonic() + _BUSY_TIMEOUT_MS / 1000
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            try:
                connection.execute("PRAGMA journal_mode=WAL")
            except sqlite3.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
    finally:
        connection.close()
