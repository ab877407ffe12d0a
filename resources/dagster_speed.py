"""Fewer waits for the disk in Dagster's own SQLite history while a runner writes to it.

Dagster opens a connection for each of its events and closes it again; each time SQLite waits for the disk, twice, which
adds up to more than the calls of a short run. The journal, not this history, is the record of what was sent, so the
history may be a moment behind after a power cut: its shared databases keep `synchronous=NORMAL` (consistent, perhaps
without the last events), the log of the one run being written goes without waiting.
"""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

from sqlalchemy import event
from sqlalchemy.engine import Engine

_RUN_LOG = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.db")


class HistoryConnections:
    """Makes this process's connections to the SQLite databases under `home` wait less; until the process ends."""

    def __init__(self, home: Path) -> None:
        self._home = home.resolve()
        self._held: dict[Path, sqlite3.Connection] = {}
        event.listen(Engine, "connect", self._connected)

    def _connected(self, connection: object, _record: object) -> None:
        if not isinstance(connection, sqlite3.Connection):
            return
        path = Path(connection.execute("PRAGMA database_list").fetchone()[2])
        if not path.name or not path.is_relative_to(self._home):
            return
        mode = "OFF" if _RUN_LOG.fullmatch(path.name) else "NORMAL"
        connection.execute(f"PRAGMA synchronous={mode}")
        if path not in self._held:
            # The last connection to close writes the whole write-ahead log back; a held one is never the last.
            held = self._held[path] = sqlite3.connect(path, check_same_thread=False)
            held.execute("SELECT count(*) FROM sqlite_master").fetchone()
