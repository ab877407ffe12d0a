"""Writing files so that a crash leaves all of one or nothing, and saying plainly why a disk refuses."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from resources.errors import IntegrityError, SrBenchError, Unavailable


def write_once(path: Path, data: bytes) -> Path:
    """Write `data` to `path` so that readers see all of it or nothing, durably (fsync before the rename).

    A file that already stands there with the same bytes is left as it is; other bytes raise `IntegrityError`,
    because what is published under a name never changes. A full disk raises `Unavailable` and leaves nothing.
    """
    if path.exists():
        _check_same(path, data)
        return path
    partial = path.with_name(f".{path.name[:80]}.{secrets.token_hex(6)}.partial")
    try:
        with readable_os_errors(path):
            make_folder(path.parent)
            _write_synced(partial, data)
            try:
                # link() fails where the name exists: of two simultaneous writers one publishes, one compares.
                os.link(partial, path)
            except FileExistsError:
                _check_same(path, data)
            except OSError as error:
                if error.errno not in (
                    errno.EPERM,
                    errno.EOPNOTSUPP,
                    errno.ENOSYS,
                    errno.EXDEV,
                    errno.EMLINK,
                ):
                    raise
                os.replace(partial, path)  # a filesystem without hard links
            sync_folder(path.parent)
    finally:
        partial.unlink(missing_ok=True)
    return path


def replace_file(path: Path, data: bytes) -> Path:
    """Write `data` to `path`, replacing what stood there: for files that are state, not artifacts."""
    partial = path.with_name(f".{path.name[:80]}.{secrets.token_hex(6)}.partial")
    try:
        with readable_os_errors(path):
            make_folder(path.parent)
            _write_synced(partial, data)
            os.replace(partial, path)
            sync_folder(path.parent)
    finally:
        partial.unlink(missing_ok=True)
    return path


def make_folder(folder: Path) -> None:
    """Create `folder` and its missing parents, owner-only and durably: what is synced in a folder whose own name
    is lost is lost with it."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in `folder` durable, so that a file published there survives a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def disk_error(error: OSError, path: Path) -> SrBenchError | None:
    """A message for people where `error` has a cause that they can mend (space, permission), else None."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return Unavailable(
            f"no space left while writing {path}",
            code="disk_full",
            field="store",
            mend="free space on that disk, or move the store with --store or SR_BENCH_STORE, then repeat",
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return Unavailable(
            f"not allowed to write {path}: {os.strerror(error.errno)}",
            code="not_writable",
            field="store",
            mend="use a store folder of your own",
        )
    return None


@contextmanager
def readable_os_errors(path: Path) -> Iterator[None]:
    """Turns an OSError that has a cause a person can mend into an error for people; lets others through."""
    try:
        yield
    except OSError as error:
        if readable := disk_error(error, path):
            raise readable from error
        raise


def _write_synced(path: Path, data: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _check_same(path: Path, data: bytes) -> None:
    if path.read_bytes() != data:
        raise IntegrityError(
            f"{path} already exists with other bytes",
            mend="published files are never edited: if it was altered, remove it by hand and repeat",
        )
