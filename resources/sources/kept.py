"""Sources that are on this machine already: found again and looked at, never downloaded."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from resources.durable import replace_file
from resources.errors import IntegrityError
from resources.sources.fetched import FetchedFile, hash_file, read_receipt
from resources.sources.git import git_folder


@dataclass(frozen=True)
class Kept:
    """A source as it was first fetched."""

    root: Path
    files: tuple[FetchedFile, ...]
    """Where each file should be, with the hash and size of the first fetch."""

    def now(self) -> dict[str, FetchedFile | None]:
        """Each file as it is now, None for one that is gone. Reads all bytes."""
        return {
            file.name: hash_file(file.name, file.path)
            if file.path.is_symlink() or file.path.is_file()
            else None
            for file in self.files
        }


def kept_hub(cache: Path, repo_id: str, revision: str) -> Kept | None:
    """The files of a hub repository at a commit, None where it was never fetched into `cache`."""
    from resources.sources.hub import hub_folder

    folder = hub_folder(cache, repo_id, revision)
    return _kept(folder, folder / "files")


def kept_git(cache: Path, url: str, revision: str, paths: Sequence[str]) -> Kept | None:
    """The files of a git repository at a commit, None where they were never fetched into `cache`."""
    folder = git_folder(cache, url, revision, paths)
    return _kept(folder, folder / "checkout")


def _kept(folder: Path, root: Path) -> Kept | None:
    receipt = read_receipt(folder)
    if receipt is None:
        return None
    files = (
        FetchedFile(name, root / name, entry["sha256"], entry["size"])
        for name, entry in receipt["files"].items()
    )
    return Kept(root, tuple(files))


def remember_import(cache: Path, files_sha256: str, root: Path) -> None:
    """Note where the source with these bytes was imported from. A note, not an artifact: whoever follows it must
    verify what is there."""
    replace_file(_note(cache, files_sha256), json.dumps({"root": str(root.resolve())}).encode())


def kept_import(cache: Path, files_sha256: str) -> Path | None:
    """The folder that the source with these bytes was last imported from, None where it is unknown or gone."""
    path = _note(cache, files_sha256)
    try:
        root = Path(json.loads(path.read_bytes())["root"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise IntegrityError(
            f"The note {path} is not readable.", mend="Remove it; the next import writes it again."
        ) from error
    return root if root.is_dir() else None


def _note(cache: Path, files_sha256: str) -> Path:
    return cache / "imports" / f"{files_sha256}.json"
