"""Making the databases of Dagster's history once, whole: Dagster itself makes them on first use without a lock.

Two processes that do so at once, or one that dies in the middle, leave databases that no later process can open.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from pathlib import Path
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from filelock import FileLock

SCHEMA = "sr_bench_dagster"
"""Where Dagster's tables are in PostgreSQL: its `runs` and `alembic_version` are not the journal's."""
_UNFINISHED = ".unfinished-"


def history_url(journal_url: str) -> str | None:
    """The URL of Dagster's history beside a journal at `journal_url`; None where that is not PostgreSQL.

    The same database, another schema, and psycopg2, which dagster-postgres needs (psycopg 3 takes no parameter in
    NOTIFY) and which is no longer what SQLAlchemy means by `postgresql:`.
    """
    parts = urlsplit(journal_url)
    if parts.scheme.split("+")[0] not in ("postgresql", "postgres"):
        return None
    query = parse_qs(parts.query)
    options = [*query.pop("options", []), f"-csearch_path={SCHEMA}"]
    encoded = urlencode({**query, "options": [" ".join(options)]}, doseq=True, quote_via=quote)
    return parts._replace(scheme="postgresql+psycopg2", query=encoded).geturl()


def make_history(home: Path, database_url: str | None) -> None:
    """Create what the instance settings in `home` need, unless that was done before.

    In `home` itself, or in PostgreSQL at `database_url` (see `history_url`). Safe in any number of processes, killed
    ones too: SQLite's databases are made elsewhere and moved into place whole; PostgreSQL's tables in transactions.
    """
    made = home / f".made-{_name_of(database_url)}"
    if made.is_file():
        return
    with FileLock(home / ".making.lock"):
        if made.is_file():
            return
        for left in home.glob(f"{_UNFINISHED}*"):
            shutil.rmtree(left, ignore_errors=True)
        if database_url is None:
            _make_files(home)
        else:
            _make_schema(database_url)
            _open_instance(home)
        made.touch(mode=0o600)


def _make_files(home: Path) -> None:
    fresh = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=home))
    shutil.copy(home / "dagster.yaml", fresh)
    _open_instance(fresh)
    for path in sorted(fresh.iterdir()):
        if not (home / path.name).exists():
            os.rename(path, home / path.name)
    shutil.rmtree(fresh)


def _make_schema(database_url: str) -> None:
    from sqlalchemy import create_engine, make_url, text

    engine = create_engine(make_url(database_url).set(drivername="postgresql+psycopg"))
    with engine.begin() as connection:
        connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}"))
    engine.dispose()


def _open_instance(folder: Path) -> None:
    from dagster import DagsterInstance  # half a second, spent once in a store's life

    with DagsterInstance.from_config(str(folder)):
        pass


def _name_of(database_url: str | None) -> str:
    """What tells one database from another, without the account and its password."""
    if database_url is None:
        return "here"
    parts = urlsplit(database_url)
    place = f"{parts.hostname}:{parts.port or 5432}{parts.path}"
    return hashlib.sha256(place.encode()).hexdigest()[:16]
