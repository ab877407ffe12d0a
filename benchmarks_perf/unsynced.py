"""A power cut, simulated: throw away what was written to a store and not synced.

Recorded in the runner: every `os.fsync` and `os.fdatasync` of Python code, as (inode, size) of a file or
(inode, names) of a folder. After the kill `lose_unsynced` cuts each file of the store to its last synced size and
removes each name whose folder was not synced since it appeared (stricter than most filesystems). Of the journal
it keeps the frames of the write-ahead log up to `mxFrame` of the shared index, which SQLite publishes only after
it synced them (`synchronous=FULL`); what lies behind is cut off, and the index itself is removed.

Not simulated: a disk that lies about a sync, torn pages of the database file (SQLite repairs these from the log),
and Dagster's own history below `dagster/`, which holds no promise of ours.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import stat
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_WAL_HEADER = 32
_FRAME_HEADER = 24
_KEPT = ("journal.sqlite3", "dagster", "datasets")


@dataclass
class Lost:
    """What a power cut took."""

    bytes: int = 0
    names: list[str] = field(default_factory=list[str])
    wal_bytes: int = 0


def record_syncs(path: Path, die_at: int | None = None) -> None:
    """From now on append a line to `path` for every file or folder that this process syncs.

    With `die_at` the process kills itself, and all of its session, where it is about to sync for that time (from 1): at
    the worst moment, with everything written and nothing safe. `died_at_sync` tells.
    """
    turns = itertools.count(1)
    record = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def recording(sync: Callable[[int], None]) -> Callable[[int], None]:
        def synced(handle: Any) -> None:
            if next(turns) == die_at:
                _mark(path).touch()
                os.killpg(0, signal.SIGKILL)
            number = handle if isinstance(handle, int) else handle.fileno()
            before = os.fstat(number)
            names = os.listdir(number) if stat.S_ISDIR(before.st_mode) else None
            sync(number)
            line = json.dumps({"inode": before.st_ino, "size": before.st_size, "names": names})
            os.write(record, line.encode() + b"\n")

        return synced

    os.fsync = recording(os.fsync)
    os.fdatasync = recording(os.fdatasync)


def died_at_sync(path: Path) -> bool:
    """Whether a process that recorded in `path` killed itself."""
    return _mark(path).exists()


def _mark(path: Path) -> Path:
    return path.with_suffix(".died")


def inventory(store: Path) -> list[dict[str, Any]]:
    """Everything in the store as if it had just been synced: the state before the runner started."""
    found: list[dict[str, Any]] = []
    for folder, folders, files in os.walk(store):
        found.append({"inode": os.stat(folder).st_ino, "size": 0, "names": folders + files})
        for name in files:
            info = os.stat(os.path.join(folder, name))
            found.append({"inode": info.st_ino, "size": info.st_size, "names": None})
    return found


def lose_unsynced(store: Path, before: list[dict[str, Any]], synced: Path) -> Lost:
    """Bring `store` into the state of a disk that lost power: `before` and what `synced` records on top.

    No process may have the store open.
    """
    lines = [line for line in synced.read_text().splitlines() if line] if synced.exists() else []
    entries = [*before, *(json.loads(line) for line in lines)]
    sizes: dict[int, int] = {}
    names: dict[int, set[str]] = {}
    for entry in entries:
        if entry["names"] is not None:
            names.setdefault(entry["inode"], set()).update(entry["names"])
        else:
            sizes[entry["inode"]] = max(sizes.get(entry["inode"], 0), entry["size"])
    lost = Lost(wal_bytes=_cut_wal(store / "journal.sqlite3"))
    _walk(store, store, sizes, names, lost)
    return lost


def _walk(store: Path, folder: Path, sizes: dict[int, int], names: dict[int, set[str]], lost: Lost) -> None:
    kept = names.get(folder.stat().st_ino, set())
    for path in sorted(folder.iterdir()):
        if folder == store and path.name.startswith(_KEPT):
            continue
        if path.name not in kept:
            lost.names.append(str(path.relative_to(store)))
            _remove(path, lost)
        elif path.is_dir():
            _walk(store, path, sizes, names, lost)
        else:
            info = path.stat()
            durable = sizes.get(info.st_ino, 0)
            if info.st_size > durable:
                lost.bytes += info.st_size - durable
                os.truncate(path, durable)


def _remove(path: Path, lost: Lost) -> None:
    if path.is_dir():
        for below in path.iterdir():
            _remove(below, lost)
        path.rmdir()
    else:
        if path.stat().st_nlink == 1:
            lost.bytes += path.stat().st_size
        path.unlink()


def _cut_wal(journal: Path) -> int:
    """Cut the write-ahead log behind its last published frame; how many bytes that took."""
    wal, index = Path(f"{journal}-wal"), Path(f"{journal}-shm")
    if not wal.exists() or not index.exists():
        return 0
    header = index.read_bytes()[:48]
    frames_end = 0
    if len(header) == 48 and header[12]:
        page_size, frames = struct.unpack_from("=HI", header, 14)
        with wal.open("rb") as file:
            same_log = file.read(_WAL_HEADER)[16:24] == header[32:40]
        if same_log and frames:
            frames_end = _WAL_HEADER + frames * (_FRAME_HEADER + (65536 if page_size == 1 else page_size))
    cut = max(wal.stat().st_size - frames_end, 0)
    os.truncate(wal, min(frames_end, wal.stat().st_size))
    index.unlink()
    return cut
