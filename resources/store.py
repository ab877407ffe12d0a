"""The store: the folder in which prepared datasets, plans, the journal, evidence and reports live."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from resources.durable import make_folder, readable_os_errors, replace_file, write_once
from resources.errors import NotFound, SrBenchError
from resources.objects import ObjectStore

__all__ = ["DATABASE_ENV", "OBJECTS_ENV", "STORE_ENV", "Store", "replace_file", "write_once"]

STORE_ENV = "SR_BENCH_STORE"
DATABASE_ENV = "SR_BENCH_DATABASE_URL"
OBJECTS_ENV = "SR_BENCH_OBJECTS_URL"

_MARKS = ("objects", "datasets", "journal.sqlite3", "dagster")
"""What makes a folder recognisable as a store; another folder that is open to others is left alone."""


@dataclass(frozen=True)
class Store:
    """An opened store. Folders are owner-only (0700), files 0600."""

    root: Path

    @classmethod
    def open(cls, path: str | Path | None = None, *, create: bool = True) -> Store:
        """The store at `path`, else at `SR_BENCH_STORE`, else in the platform's user data folder.

        Raises `NotFound` if it does not exist and `create` is False, `SrBenchError` if it belongs to another
        user, is no folder, or is a folder of other things that other users may read.
        """
        root = _discover(path)
        try:
            return cls._opened(root, create=create)
        except OSError as error:
            raise SrBenchError(
                f"the store {root} cannot be used: {error.strerror or error}",
                code="bad_store",
                field="store",
                mend="name a folder that you may make and write, with --store or SR_BENCH_STORE",
            ) from error

    @classmethod
    def _opened(cls, root: Path, *, create: bool) -> Store:
        if not root.exists():
            if not create:
                raise NotFound(
                    f"there is no store at {root}",
                    field="store",
                    mend="prepare a dataset first, or name another folder with --store or SR_BENCH_STORE",
                )
            with readable_os_errors(root):
                make_folder(root)
        _check_owner_and_mode(root)
        return cls(root)

    @cached_property
    def objects(self) -> ObjectStore:
        """Content-addressed bytes: `objects/` here, or wherever `SR_BENCH_OBJECTS_URL` (fsspec) points."""
        url = os.environ.get(OBJECTS_ENV)
        if url:
            return ObjectStore(url, cache_dir=self._folder("objects-cache"))
        return ObjectStore(self._folder("objects").as_uri())

    @property
    def datasets_dir(self) -> Path:
        return self._folder("datasets")

    @property
    def plans_dir(self) -> Path:
        return self._folder("plans")

    @property
    def runs_dir(self) -> Path:
        return self._folder("runs")

    def run_dir(self, run_id: str) -> Path:
        """`runs/<run_id>`: open evidence streams and reports of one run."""
        if not run_id or "/" in run_id or run_id.startswith("."):
            raise SrBenchError(
                f"{run_id!r} is not a run id", field="run_id", mend="list ids with `sr-bench runs`"
            )
        return self._folder("runs", run_id)

    def evidence_dir(self, run_id: str) -> Path:
        """`runs/<run_id>/evidence`: the segments that the run's writers append to."""
        return self._folder("runs", run_id, "evidence")

    @property
    def dagster_home(self) -> Path:
        return self._folder("dagster")

    @property
    def journal_path(self) -> Path:
        """The SQLite journal's file; unused where `SR_BENCH_DATABASE_URL` is set."""
        return self.root / "journal.sqlite3"

    @property
    def database_url(self) -> str:
        """SQLAlchemy URL of the journal. May carry a password: never print it."""
        url = os.environ.get(DATABASE_ENV)
        if not url:
            return f"sqlite:///{self.journal_path}"
        for scheme in ("postgres://", "postgresql://"):
            if url.startswith(scheme):
                return "postgresql+psycopg://" + url.removeprefix(scheme)
        return url

    def _folder(self, *parts: str) -> Path:
        folder = self.root.joinpath(*parts)
        if not folder.is_dir():
            with readable_os_errors(folder):
                make_folder(folder)
        return folder


def _discover(path: str | Path | None) -> Path:
    chosen = path or os.environ.get(STORE_ENV)
    if not chosen:
        import platformdirs

        chosen = platformdirs.user_data_path("sr-bench", appauthor=False)
    return Path(chosen).expanduser().resolve()


def _check_owner_and_mode(root: Path) -> None:
    info = root.stat()
    if not stat.S_ISDIR(info.st_mode):
        raise SrBenchError(
            f"the store {root} is not a folder",
            field="store",
            mend="name a folder with --store or SR_BENCH_STORE",
        )
    if hasattr(os, "geteuid") and info.st_uid != os.geteuid():
        raise SrBenchError(
            f"the store {root} is owned by another user (uid {info.st_uid}, you are {os.geteuid()})",
            code="foreign_store",
            field="store",
            mend="use a store of your own with --store or SR_BENCH_STORE",
        )
    if info.st_mode & 0o077:
        names = {entry.name for entry in os.scandir(root)}
        if names and not names.intersection(_MARKS):
            raise SrBenchError(
                f"{root} is open to other users and holds things that are not ours",
                code="not_a_store",
                field="store",
                mend=f"name an empty folder for the store, or make this one yours alone: chmod 700 {root}",
            )
        root.chmod(0o700)
