"""What a source fetch yields: named files on disk with the SHA-256 of the bytes that were really read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from resources.durable import replace_file
from resources.errors import IntegrityError

Progress = Callable[[str, int, int | None], None]
"""Called with (what, done, total) while bytes or files arrive; total is None where it is unknown."""


def no_progress(what: str, done: int, total: int | None) -> None:
    """Tells nobody."""


@dataclass(frozen=True)
class FetchedFile:
    """One source file: logical name (its path in the upstream repository), where it is, and its identity."""

    name: str
    path: Path
    sha256: str
    size: int


@dataclass(frozen=True)
class Fetched:
    """All files of one source at one revision, each hashed."""

    kind: str
    """hub | git | local"""
    url: str
    revision: str
    root: Path
    files: tuple[FetchedFile, ...]

    def paths(self) -> Mapping[str, Path]:
        """Logical name → path on disk."""
        return {file.name: file.path for file in self.files}


def sha256_file(path: Path) -> str:
    """Hex SHA-256 of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def hash_file(name: str, path: Path, *, follow_links: bool = False) -> FetchedFile:
    """Read and hash one file. A symbolic link is hashed as its target's text, as git does, unless it is followed."""
    if path.is_symlink() and not follow_links:
        target = str(path.readlink()).encode()
        return FetchedFile(name, path, hashlib.sha256(target).hexdigest(), len(target))
    return FetchedFile(name, path, sha256_file(path), path.stat().st_size)


def files_under(root: Path, relative: str) -> Iterator[tuple[str, Path]]:
    """(logical name, path) of the file `root/relative`, or of every file below that folder, in name order.

    The folder `.git` is left out. Raises FileNotFoundError where there is no such file or folder.
    """
    start = root / relative if relative else root
    if start.is_symlink() or start.is_file():
        yield relative, start
        return
    if not start.is_dir():
        raise FileNotFoundError(start)
    for path in sorted(start.rglob("*")):
        if ".git" in path.relative_to(root).parts:
            continue
        if path.is_symlink() or path.is_file():
            yield path.relative_to(root).as_posix(), path


@contextmanager
def shared_lock(folder: Path, url: str, progress: Progress) -> Iterator[None]:
    """Of concurrent jobs that want the source in `folder`, one fetches it; the others wait here and then find it.

    The system frees the lock of a process that dies.
    """
    lock = FileLock(folder.with_name(f"{folder.name}.lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        progress(f"{url}: waiting for another job that fetches it", 0, None)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


RECEIPT = "receipt.json"


def read_receipt(folder: Path) -> dict[str, Any] | None:
    """What was recorded when this source was first fetched into `folder`, or None."""
    try:
        return json.loads((folder / RECEIPT).read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise IntegrityError(
            f"The receipt {folder / RECEIPT} is not readable JSON.",
            mend="Remove the folder that holds it; the source will be fetched again.",
        ) from error


def write_receipt(folder: Path, url: str, revision: str, files: tuple[FetchedFile, ...]) -> None:
    """Record the identity of a completely fetched and verified source."""
    document = {
        "url": url,
        "revision": revision,
        "files": {file.name: {"sha256": file.sha256, "size": file.size} for file in files},
    }
    replace_file(folder / RECEIPT, json.dumps(document, indent=1, sort_keys=True).encode())


def same_as_receipt(folder: Path, files: tuple[FetchedFile, ...]) -> list[str]:
    """Names whose bytes differ from the first fetch of this revision (empty: equal, or no receipt yet)."""
    receipt = read_receipt(folder)
    if receipt is None:
        return []
    known: dict[str, dict[str, Any]] = receipt["files"]
    return [file.name for file in files if file.name in known and known[file.name]["sha256"] != file.sha256]
