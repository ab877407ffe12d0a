"""Imports of a file or a checkout that lies on this machine: the actual bytes are hashed."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from resources.errors import IntegrityError, NotFound, SrBenchError
from resources.sources.fetched import Fetched, FetchedFile, files_under, hash_file

REVISION = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._/+-]{0,199}$")


def import_files(source_path: Path, names: Sequence[str], revision: str) -> Fetched:
    """Hash local stand-ins for the hub files `names`.

    `source_path` is the one file (any of its formats), or a folder that holds every name, by its full relative
    path or by its base name. Raises NotFound for a missing file.
    """
    source_path = _existing(source_path, revision)
    if source_path.is_file():
        if len(names) != 1:
            raise SrBenchError(
                f"This benchmark reads {len(names)} files ({', '.join(names)}); {source_path.name} is one file.",
                field="--source-path",
                mend="Give the folder that holds all of them.",
            )
        found = [(names[0], source_path)]
        root = source_path.parent
    else:
        root = source_path
        revision = verify_checkout(root, revision, [])
        found = [(name, _first_existing(root, name)) for name in names]
    # A hub's local cache is made of links to its files: these are followed, for the bytes are what is imported.
    return _hashed(source_path, root, found, revision, follow_links=True)


def import_tree(source_path: Path, paths: Sequence[str], revision: str) -> Fetched:
    """Hash the files below `paths` of a local checkout (or of a plain copy of one).

    `source_path` is the checkout's root; where exactly one path is wanted it may also be that folder itself. A
    checkout whose HEAD is not `revision`, or with local changes in `paths`, is refused.
    """
    source_path = _existing(source_path, revision)
    root = source_path
    if not root.is_dir():
        raise SrBenchError(
            f"{source_path} is a file; this benchmark reads a checkout.",
            field="--source-path",
            mend="Give the root folder of the checkout.",
        )
    if len(paths) == 1 and paths[0] and not (root / paths[0]).exists():
        wanted = Path(paths[0])
        if root.resolve().parts[-len(wanted.parts) :] == wanted.parts:
            root = root.resolve().parents[len(wanted.parts) - 1]
    revision = verify_checkout(root, revision, paths)
    found: list[tuple[str, Path]] = []
    for path in paths:
        try:
            found.extend(files_under(root, path))
        except FileNotFoundError as error:
            raise NotFound(
                f"{source_path} has no {path}.",
                code="missing_file",
                field="--source-path",
                mend=f"Give the root of a checkout that holds: {', '.join(paths)}.",
            ) from error
    return _hashed(source_path, root, found, revision)


def verify_checkout(root: Path, revision: str, paths: Sequence[str]) -> str:
    """The revision of the checkout at `root`: its full HEAD where `root` is the top of a git checkout, else the
    label as given. Raises IntegrityError where HEAD is another commit or `paths` hold local changes."""
    if not (root / ".git").exists():
        return revision
    head = _git(root, "rev-parse", "HEAD").strip()
    abbreviated = re.fullmatch(r"[0-9a-f]{7,40}", revision) is not None
    if not (head == revision or (abbreviated and head.startswith(revision))):
        raise IntegrityError(
            f"The checkout {root} is at {head}, not at {revision}.",
            code="wrong_revision",
            field="--revision",
            mend=f"Check out {revision} there, or pass --revision {head}.",
        )
    changed = _git(root, "status", "--porcelain", "--ignored", "--", *(p or "." for p in paths)).splitlines()
    if changed:
        raise IntegrityError(
            f"The checkout {root} has local changes that {head[:12]} does not have: "
            + ", ".join(line[3:] for line in changed[:5])
            + (f" and {len(changed) - 5} more" if len(changed) > 5 else ""),
            code="changed_source",
            field="--source-path",
            mend="Restore or commit them, or import a plain copy without .git under a revision label of its own.",
        )
    return head


def _git(root: Path, *arguments: str) -> str:
    command = ["git", "-c", f"safe.directory={root.resolve()}", "-C", str(root), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    except FileNotFoundError as error:
        raise NotFound("git is not installed.", mend="Install git to import a checkout.") from error
    if done.returncode != 0:
        raise SrBenchError(
            f"git cannot read the checkout {root}: {done.stderr.strip()}", field="--source-path"
        )
    return done.stdout


def _existing(source_path: Path, revision: str) -> Path:
    if not REVISION.match(revision):
        raise SrBenchError(
            f"{revision!r} is not a usable revision label.",
            field="--revision",
            mend="Use up to 200 letters, digits and . _ / + -, for example imported-v1.",
        )
    if not source_path.exists():
        raise NotFound(
            f"{source_path} does not exist.",
            code="missing_file",
            field="--source-path",
            mend="Give the path of an existing file or folder.",
        )
    return source_path


def _first_existing(root: Path, name: str) -> Path:
    for candidate in (root / name, root / Path(name).name):
        if candidate.is_file():
            return candidate
    raise NotFound(
        f"{root} has no {name}.",
        code="missing_file",
        field="--source-path",
        mend="Give a folder that holds every file of this benchmark.",
    )


def _hashed(
    given: Path, root: Path, found: list[tuple[str, Path]], revision: str, *, follow_links: bool = False
) -> Fetched:
    files: dict[str, FetchedFile] = {
        name: hash_file(name, path, follow_links=follow_links) for name, path in found
    }
    # Only the last part of the path: an artifact's identity must not depend on where it lay on one machine.
    return Fetched("local", f"local:{given.resolve().name}", revision, root, tuple(files.values()))
