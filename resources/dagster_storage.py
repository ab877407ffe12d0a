"""Making the databases of Dagster's history once, whole: Dagster itself makes them on first use without a lock.

Two processes that do so at once, or one that dies in the middle, leave databases that no later process can open.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

from filelock import FileLock

_UNFINISHED = ".unfinished-"


def make_history(home: Path, database_url: str | None) -> None:
    """Create what the instance settings in `home` need, unless that was done before.

    In `home` itself, or in the PostgreSQL database `database_url`. Safe in any number of processes, killed ones too:
    the SQLite databases are made elsewhere and moved into place whole; PostgreSQL makes its tables in transactions.
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
