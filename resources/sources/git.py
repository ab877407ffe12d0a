"""Files of a git repository at a pinned commit: fetched once into a cache, verified, shared by concurrent jobs."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from resources.durable import readable_os_errors
from resources.errors import IntegrityError, NotFound, SrBenchError, Unavailable
from resources.sources.fetched import (
    Fetched,
    FetchedFile,
    Progress,
    files_under,
    hash_file,
    no_progress,
    read_receipt,
    same_as_receipt,
    shared_lock,
    write_receipt,
)

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
# Every setting of the user's that could change the bytes of a checkout, run a program or ask a question is off;
# their URL rewrites (`insteadOf`) and credential helpers stay, so mirrors and private hosts work.
_SETTINGS = (
    "-c", "core.hooksPath=/dev/null", "-c", "core.autocrlf=false", "-c", "core.fsmonitor=false",
    "-c", "core.attributesFile=/dev/null", "-c", "advice.detachedHead=false", "-c", "gc.auto=0",
)  # fmt: skip
_DISK_FULL = ("No space left on device", "Disk quota exceeded", "File too large")


def fetch_git(
    cache: Path, url: str, revision: str, paths: Sequence[str], progress: Progress = no_progress
) -> Fetched:
    """The files below `paths` ("" = all) of the repository `url` at commit `revision` (full hash).

    Only that commit, and only the wanted paths where the server can filter, are downloaded. A checkout already in
    the cache is hashed and reused; one that differs from its first fetch is made anew.

    Raises Unavailable (unreachable, disk full), NotFound (no such commit or path), IntegrityError (other bytes).
    """
    if not _COMMIT.fullmatch(revision):
        raise SrBenchError(
            f"{revision!r} is not the full hash of a commit.",
            field="--revision",
            mend="Give the 40 hexadecimal digits: branches and tags move.",
        )
    folder = git_folder(cache, url, revision, paths)
    with readable_os_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with shared_lock(folder, url, progress):
            checkout = folder / "checkout"
            files = _reusable(folder, checkout, paths)
            if files is None:
                progress(f"{url} at {revision[:12]}", 0, None)
                shutil.rmtree(checkout, ignore_errors=True)
                _check_out(checkout, url, revision, paths)
                files = _hashed(checkout, url, revision, paths)
                changed = same_as_receipt(folder, files)
                if changed:
                    raise IntegrityError(
                        f"{url} at {revision} now has other bytes than when this store first fetched it: "
                        + ", ".join(changed[:5]),
                        code="changed_source",
                        mend=f"Check the mirror; if the first fetch was the wrong one, remove {folder}.",
                    )
                write_receipt(folder, url, revision, files)
            progress(f"{url} at {revision[:12]}", len(files), len(files))
    return Fetched("git", url, revision, checkout, files)


def git_folder(cache: Path, url: str, revision: str, paths: Sequence[str]) -> Path:
    """Where the wanted part of a repository at a commit is kept: `receipt.json`, and the files below `checkout/`."""
    where = hashlib.sha256("\0".join((url, *paths)).encode()).hexdigest()[:12]
    return cache / "git" / f"{Path(url.rstrip('/')).name.removesuffix('.git')}-{where}" / revision


def _reusable(folder: Path, checkout: Path, paths: Sequence[str]) -> tuple[FetchedFile, ...] | None:
    """The files of an earlier complete checkout if none is missing or changed, else None."""
    receipt = read_receipt(folder)
    if receipt is None or not checkout.is_dir():
        return None
    try:
        files = _listed(checkout, paths)
    except FileNotFoundError:
        return None
    known = {name: entry["sha256"] for name, entry in receipt["files"].items()}
    return files if {file.name: file.sha256 for file in files} == known else None


def _hashed(checkout: Path, url: str, revision: str, paths: Sequence[str]) -> tuple[FetchedFile, ...]:
    try:
        return _listed(checkout, paths)
    except FileNotFoundError as error:
        missing = Path(str(error.args[0])).relative_to(checkout).as_posix()
        raise NotFound(
            f"{url} at {revision} has no {missing}.",
            code="missing_file",
            mend="The source is pinned: check that the mirror is complete.",
        ) from error


def _listed(checkout: Path, paths: Sequence[str]) -> tuple[FetchedFile, ...]:
    found = {name: path for wanted in paths for name, path in files_under(checkout, wanted)}
    return tuple(hash_file(name, path) for name, path in found.items())


def _check_out(checkout: Path, url: str, revision: str, paths: Sequence[str]) -> None:
    checkout.mkdir(parents=True)
    _git(checkout, url, "init", "--quiet")
    _git(checkout, url, "remote", "add", "origin", url)
    # Blobs come with the checkout, for the wanted paths only; a server that can't filter sends them all.
    _git(checkout, url, "config", "remote.origin.promisor", "true")
    _git(checkout, url, "config", "remote.origin.partialclonefilter", "blob:none")
    if "" not in paths:
        _git(checkout, url, "sparse-checkout", "set", "--no-cone", *(f"/{path}" for path in paths))
    try:
        _git(
            checkout,
            url,
            "fetch",
            "--quiet",
            "--depth=1",
            "--no-tags",
            "--filter=blob:none",
            "origin",
            revision,
        )
    except NotFound:
        # Servers of old protocols give branches and tags only: take those and look for the commit in them.
        _git(checkout, url, "fetch", "--quiet", "--filter=blob:none", "origin", "+refs/*:refs/remotes/all/*")
    _git(checkout, url, "checkout", "--quiet", "--detach", revision)
    head = _git(checkout, url, "rev-parse", "HEAD").strip()
    if head != revision:
        raise IntegrityError(f"{url}: asked for {revision}, got {head}.", code="wrong_revision")


def _git(checkout: Path, url: str, *arguments: str) -> str:
    environment = {
        **os.environ,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "LC_ALL": "C",
    }
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        environment.pop(name, None)
    command = ["git", *_SETTINGS, "-C", str(checkout), *arguments]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, env=environment
        )
    except FileNotFoundError as error:
        raise NotFound(
            "git is not installed.", mend="Install git; this source is a git repository."
        ) from error
    if done.returncode == 0:
        return done.stdout
    raise _readable(done.stderr.strip(), url, checkout)


def _readable(message: str, url: str, checkout: Path) -> SrBenchError:
    last = message.splitlines()[-1] if message else "no message"
    if any(sign in message for sign in _DISK_FULL):
        return Unavailable(
            f"The disk that holds {checkout} is full; nothing was published.",
            code="disk_full",
            mend="Free some space, or choose another store with --store or SR_BENCH_STORE, and repeat.",
        )
    if re.search(
        r"not our ref|unadvertised object|reference is not a tree|unable to read tree|bad object", message
    ):
        return NotFound(
            f"{url} does not have the pinned commit: {last}",
            code="wrong_revision",
            mend="Check that the mirror is complete and holds that commit.",
        )
    return Unavailable(
        f"git cannot read {url}: {last}",
        code="unreachable",
        mend="Check the network and your access to the repository, and repeat.",
    )
