"""Content-addressed objects: bytes known by their SHA-256, on this disk or anywhere that fsspec reaches."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from resources.canonical import sha256_bytes
from resources.durable import make_folder, readable_os_errors, sync_folder, write_once
from resources.errors import IntegrityError, NotFound, SrBenchError, Unavailable

_CHUNK = 1 << 20
_SHA256 = re.compile(r"[0-9a-f]{64}")


class ObjectStore:
    """Objects under `url` (an fsspec URL such as `file:///…`, `s3://bucket/prefix`, `memory://x`).

    Objects are written once; reading verifies the digest. `cache_dir` keeps local copies of remote objects
    for readers that need a path (Parquet).
    """

    def __init__(self, url: str, *, cache_dir: Path | None = None) -> None:
        parts = urlsplit(url)
        self._local: Path | None = None
        if parts.scheme in ("", "file"):
            self._local = Path(unquote(parts.path) if parts.scheme else url)
        elif cache_dir is None:
            raise ValueError("remote objects need a cache folder")
        self._url = url.rstrip("/")
        self._cache_dir = cache_dir

    def put(self, data: bytes) -> str:
        """Store `data` durably and return its SHA-256; bytes that are there already are not written again."""
        sha256 = sha256_bytes(data)
        if self._local is not None:
            write_once(self._path(sha256), data)
            return sha256
        with _readable_remote_errors(self._url):
            if not self._remote_has(sha256, len(data)):
                self._filesystem.pipe_file(self._key(sha256), data)
        return sha256

    def put_file(self, path: Path) -> str:
        """Store the bytes of the file at `path` (may be larger than memory) and return their SHA-256."""
        sha256 = _file_sha256(path)
        if self._local is not None:
            self._link_or_copy(path, self._path(sha256), sha256)
            return sha256
        with _readable_remote_errors(self._url):
            if not self._remote_has(sha256, path.stat().st_size):
                self._filesystem.put_file(str(path), self._key(sha256))
        return sha256

    def get(self, sha256: str) -> bytes:
        """The bytes known as `sha256`. Raises `NotFound`, or `IntegrityError` if they have changed."""
        if self._local is not None:
            try:
                data = self._path(sha256).read_bytes()
            except FileNotFoundError:
                raise _missing(sha256) from None
        else:
            with _readable_remote_errors(self._url):
                try:
                    data = bytes(self._filesystem.cat_file(self._key(sha256)))
                except FileNotFoundError:
                    raise _missing(sha256) from None
        if sha256_bytes(data) != sha256:
            raise _changed(sha256)
        return data

    def exists(self, sha256: str) -> bool:
        """Whether an object of that name is stored (its bytes are verified on reading, not here)."""
        if self._local is not None:
            return self._path(sha256).is_file()
        with _readable_remote_errors(self._url):
            return bool(self._filesystem.exists(self._key(sha256)))

    def open_local(self, sha256: str) -> Path:
        """A local file with the verified bytes of `sha256`: the object itself, or a copy of a remote one."""
        path = self._path(sha256)
        if not path.is_file():
            if self._local is not None:
                raise _missing(sha256)
            self._fetch(sha256, path)
        if _file_sha256(path) != sha256:
            if self._local is None:
                path.unlink(
                    missing_ok=True
                )  # a torn copy is fetched afresh next time; the object is untouched
            raise _changed(sha256)
        return path

    @cached_property
    def _filesystem(self) -> Any:
        import fsspec

        try:
            filesystem, _ = fsspec.core.url_to_fs(self._url)
        except (ImportError, ValueError) as error:
            raise SrBenchError(
                f"SR_BENCH_OBJECTS_URL cannot be used: {error}",
                field="SR_BENCH_OBJECTS_URL",
                mend="install the file system's package (for s3:// the extra `s3`), or correct the URL",
            ) from error
        return filesystem

    def _key(self, sha256: str) -> str:
        return f"{self._url}/{_checked(sha256)[:2]}/{sha256}"

    def _path(self, sha256: str) -> Path:
        root = self._local if self._local is not None else self._cache_dir
        assert root is not None  # the constructor refuses remote objects without a cache folder
        return root / _checked(sha256)[:2] / sha256

    def _remote_has(self, sha256: str, size: int) -> bool:
        try:
            # A size that differs is the torn write of an earlier crash: it is written again.
            return self._filesystem.info(self._key(sha256)).get("size") == size
        except FileNotFoundError:
            return False

    def _fetch(self, sha256: str, path: Path) -> None:
        path.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
        partial = path.with_name(f".{sha256[:16]}.{secrets.token_hex(6)}.partial")
        try:
            with _readable_remote_errors(self._url):
                try:
                    self._filesystem.get_file(self._key(sha256), str(partial))
                except FileNotFoundError:
                    raise _missing(sha256) from None
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)

    @staticmethod
    def _link_or_copy(source: Path, path: Path, sha256: str) -> None:
        if path.is_file() and path.stat().st_size == source.stat().st_size:
            return
        partial = path.with_name(f".{sha256[:16]}.{secrets.token_hex(6)}.partial")
        try:
            with readable_os_errors(path):
                make_folder(path.parent)
                # Copied, not linked: the source may be a file that its owner still appends to or edits.
                if _copy_synced(source, partial) != sha256:
                    raise IntegrityError(
                        f"{source} changed while it was being stored", mend="repeat it at rest"
                    )
                os.replace(partial, path)
                sync_folder(path.parent)
        finally:
            partial.unlink(missing_ok=True)


@contextmanager
def _readable_remote_errors(url: str) -> Iterator[None]:
    """Failures of a remote object store, told without the URL's path, query or credentials."""
    try:
        yield
    except Exception as error:
        # A programming error, or an error told already, must not be disguised as an outage.
        if not isinstance(error, OSError) and type(error).__module__.partition(".")[0] not in (
            "botocore",
            "aiohttp",
        ):
            raise
        place = f"{urlsplit(url).scheme}://{urlsplit(url).hostname or ''}"
        raise Unavailable(
            f"the object store {place} failed: {type(error).__name__}",
            field="SR_BENCH_OBJECTS_URL",
            mend="check that it is reachable and that its credentials are valid",
        ) from error


def _checked(sha256: str) -> str:
    if not _SHA256.fullmatch(sha256):
        raise SrBenchError(
            f"{sha256!r} is not a SHA-256", mend="use the 64 lower-case hex digits of the digest"
        )
    return sha256


def _copy_synced(source: Path, target: Path) -> str:
    """Copy `source` durably to the new file `target`; the SHA-256 of what was copied."""
    digest = hashlib.sha256()
    handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as writer, source.open("rb") as reader:
        while chunk := reader.read(_CHUNK):
            digest.update(chunk)
            writer.write(chunk)
        writer.flush()
        os.fsync(writer.fileno())
    return digest.hexdigest()


def _file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _missing(sha256: str) -> NotFound:
    return NotFound(f"no object {sha256} in the store", mend="restore it from a backup, or produce it anew")


def _changed(sha256: str) -> IntegrityError:
    return IntegrityError(
        f"the object {sha256} has other bytes than its name says",
        mend="restore it from a backup, or remove it and produce it anew",
    )
