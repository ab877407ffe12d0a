"""Files of one dataset repository of a Hugging Face hub at a pinned commit: downloaded once, verified, shared."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from resources.durable import readable_os_errors
from resources.errors import IntegrityError
from resources.sources.fetched import (
    Fetched,
    FetchedFile,
    Progress,
    hash_file,
    no_progress,
    read_receipt,
    same_as_receipt,
    shared_lock,
    write_receipt,
)
from resources.sources.hub_download import DEFAULT_ENDPOINT, Download, HubAccess, verified


def fetch_hub(
    cache: Path,
    repo_id: str,
    revision: str,
    files: Sequence[str],
    progress: Progress = no_progress,
    access: HubAccess | None = None,
) -> Fetched:
    """The `files` of dataset repository `repo_id` at commit `revision`, below `cache`, each verified.

    A file already there is hashed and reused; one that differs from its first fetch is fetched again. A lock on
    the folder makes concurrent jobs share one download; a download that was cut goes on where it stopped.

    Raises Unavailable (unreachable, gated, disk full), NotFound (no such revision or file), IntegrityError (other
    bytes than the hub states, or than were first fetched at this revision).
    """
    folder = hub_folder(cache, repo_id, revision)
    url = f"{DEFAULT_ENDPOINT}/datasets/{repo_id}"
    with readable_os_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with shared_lock(folder, url, progress):
            receipt = read_receipt(folder) or {"files": {}}
            known: dict[str, dict[str, object]] = receipt["files"]
            fetched: list[FetchedFile] = []
            for name in files:
                target = folder / "files" / name
                if target.is_file():
                    file = hash_file(name, target)
                    if known.get(name, {}).get("sha256") == file.sha256:
                        fetched.append(file)
                        continue
                access = access or HubAccess.from_environment()
                fetched.append(Download(access, repo_id, revision, name, target).run(progress))
            result = tuple(fetched)
            _refuse_other_bytes(folder, repo_id, revision, result)
            write_receipt(folder, url, revision, result)
    return Fetched("hub", url, revision, folder / "files", result)


def hub_folder(cache: Path, repo_id: str, revision: str) -> Path:
    """Where the files of a repository at a commit are kept: `receipt.json`, and the files below `files/`."""
    return cache / "hub" / repo_id.replace("/", "--") / revision


def stated_by_hub(
    cache: Path, repo_id: str, revision: str, files: Sequence[str], access: HubAccess | None = None
) -> dict[str, tuple[str, bool]]:
    """What the hub states now of each file, without downloading: (its hash, whether our copy has it).

    Raises as `fetch_hub`.
    """
    access = access or HubAccess.from_environment()
    folder = hub_folder(cache, repo_id, revision) / "files"
    stated: dict[str, tuple[str, bool]] = {}
    for name in files:
        download = Download(access, repo_id, revision, name, folder / name)
        _, metadata, etag = download.stated()
        stated[name] = (etag, download.target.is_file() and verified(download.target, etag, metadata.size))
    return stated


def _refuse_other_bytes(folder: Path, repo_id: str, revision: str, files: tuple[FetchedFile, ...]) -> None:
    changed = same_as_receipt(folder, files)
    if not changed:
        return
    for name in changed:
        (folder / "files" / name).unlink(missing_ok=True)
    raise IntegrityError(
        f"{repo_id} at {revision} now has other bytes than when this store first fetched it: {', '.join(changed)}.",
        code="changed_source",
        mend="A commit never changes: check HF_ENDPOINT and any mirror. If the first fetch was the wrong one, "
        f"remove {folder}.",
    )
