"""Files of one dataset repository of a Hugging Face hub at a pinned commit: downloaded once, resumed, verified."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from filelock import FileLock

from resources.durable import readable_os_errors
from resources.errors import IntegrityError, NotFound, Unavailable
from resources.sources.fetched import (
    Fetched,
    FetchedFile,
    Progress,
    hash_file,
    no_progress,
    read_receipt,
    same_as_receipt,
    write_receipt,
)

if TYPE_CHECKING:
    from huggingface_hub import HfFileMetadata

DEFAULT_ENDPOINT = "https://huggingface.co"
READ_TIMEOUT_S = 30.0
MAX_ATTEMPTS = 4
"""GETs in a row that bring nothing new before a download is given up."""
_SHA256 = re.compile(r"[0-9a-f]{64}")
_GIT_BLOB = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class HubAccess:
    """Which hub, and the credential for gated repositories (held in memory only)."""

    endpoint: str
    token: str | None

    @classmethod
    def from_environment(cls) -> HubAccess:
        """`HF_ENDPOINT` and `HF_TOKEN`, read now; else the public hub and the token of a hub login, if any."""
        from huggingface_hub import get_token

        endpoint = os.environ.get("HF_ENDPOINT", "").rstrip("/") or DEFAULT_ENDPOINT
        return cls(endpoint, get_token())

    def __repr__(self) -> str:
        return f"HubAccess({self.endpoint!r}, token={'set' if self.token else 'none'})"


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
    folder = cache / "hub" / repo_id.replace("/", "--") / revision
    url = f"{DEFAULT_ENDPOINT}/datasets/{repo_id}"
    with readable_os_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_name(f"{revision}.lock")):
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
                fetched.append(_Download(access, repo_id, revision, name, target).run(progress))
            result = tuple(fetched)
            _refuse_other_bytes(folder, repo_id, revision, result)
            write_receipt(folder, url, revision, result)
    return Fetched("hub", url, revision, folder / "files", result)


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


@dataclass(frozen=True)
class _Download:
    access: HubAccess
    repo_id: str
    revision: str
    name: str
    target: Path

    def run(self, progress: Progress) -> FetchedFile:
        """Download into a partial file that survives a crash, verify it, and move it in place."""
        from huggingface_hub import get_hf_file_metadata, hf_hub_url

        url = hf_hub_url(
            self.repo_id,
            self.name,
            repo_type="dataset",
            revision=self.revision,
            endpoint=self.access.endpoint,
        )
        with self._readable_errors():
            metadata = get_hf_file_metadata(
                url, token=self.access.token or False, endpoint=self.access.endpoint
            )
        etag = self._checked_etag(metadata)
        self.target.parent.mkdir(parents=True, exist_ok=True)
        # Named by what the hub states of the content: a partial file of other content is never continued.
        partial = self.target.with_name(f"{self.target.name}.{etag[:16]}.part")
        resumed = partial.exists() and partial.stat().st_size > 0
        self._download(url, metadata, partial, progress)
        if resumed and not self._verified(partial, etag, metadata.size):
            partial.unlink()
            self._download(url, metadata, partial, progress)
        if not self._verified(partial, etag, metadata.size):
            size = partial.stat().st_size
            partial.unlink()
            raise IntegrityError(
                f"{self.repo_id}: the {size} bytes received as {self.name} are not those that the hub states "
                f"(size {metadata.size}, hash {etag}).",
                code="changed_source",
                mend="Try again; if it stays, the hub or a mirror before it serves damaged files: "
                "check HF_ENDPOINT.",
            )
        partial.replace(self.target)
        return hash_file(self.name, self.target)

    def _checked_etag(self, metadata: HfFileMetadata) -> str:
        if metadata.commit_hash != self.revision:
            raise IntegrityError(
                f"{self.repo_id}: asked for commit {self.revision}, but the hub serves {metadata.commit_hash}.",
                code="wrong_revision",
                mend="The source is pinned; check that HF_ENDPOINT names a complete mirror.",
            )
        etag = (metadata.etag or "").strip('"')
        if not (_SHA256.fullmatch(etag) or _GIT_BLOB.fullmatch(etag)):
            raise IntegrityError(
                f"{self.repo_id}: the hub states no content hash for {self.name} (ETag {etag!r}).",
                code="unverifiable_source",
                mend="Check that HF_ENDPOINT names a server that speaks the hub's protocol.",
            )
        return etag

    def _download(self, url: str, metadata: HfFileMetadata, partial: Path, progress: Progress) -> None:
        location = metadata.location if not metadata.xet_file_data else url
        # A signed address of another host must not get our credential.
        trusted = {urlsplit(url).netloc, urlsplit(DEFAULT_ENDPOINT).netloc}
        token = self.access.token if urlsplit(location).netloc in trusted else None
        attempts = 0
        while True:
            before = partial.stat().st_size if partial.exists() else 0
            if metadata.size is not None and before >= metadata.size:
                return
            try:
                with self._readable_errors():
                    self._receive(location, token, metadata.size, partial, progress)
                return
            except Unavailable as error:
                # Going on from where it was cut is no new request for anything: only missing bytes are asked for.
                attempts = 1 if partial.exists() and partial.stat().st_size > before else attempts + 1
                if error.code != "unreachable" or attempts >= MAX_ATTEMPTS:
                    raise
                time.sleep(0.2 * 2**attempts)

    def _receive(
        self, location: str, token: str | None, size: int | None, partial: Path, progress: Progress
    ) -> None:
        """One GET, from the end of the partial file on, written as it arrives."""
        from huggingface_hub.utils import build_hf_headers, get_session, hf_raise_for_status

        headers = {**build_hf_headers(token=token or False), "Accept-Encoding": "identity"}
        with partial.open("ab") as stream:
            start = stream.tell()
            if start:
                headers["Range"] = f"bytes={start}-"
            with get_session().stream("GET", location, headers=headers, timeout=READ_TIMEOUT_S) as response:
                hf_raise_for_status(response)
                if start and response.status_code != 206:
                    stream.truncate(0)  # the server sends the whole file
                for block in response.iter_raw():
                    stream.write(block)
                    progress(self.name, stream.tell(), size)

    def _verified(self, path: Path, etag: str, size: int | None) -> bool:
        actual = path.stat().st_size
        if size is not None and actual != size:
            return False
        if _SHA256.fullmatch(etag):
            digest = hashlib.sha256()
        else:
            # Files outside large-file storage are known by their git blob id.
            digest = hashlib.sha1(f"blob {actual}\0".encode(), usedforsecurity=False)
        with path.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
        return digest.hexdigest() == etag

    @contextmanager
    def _readable_errors(self) -> Iterator[None]:
        from huggingface_hub import errors

        try:
            yield
        except errors.GatedRepoError as error:
            raise self._gated() from error
        except errors.RepositoryNotFoundError as error:
            if self.access.token is None:
                raise self._gated() from error
            raise NotFound(
                f"{self.access.endpoint} has no dataset repository {self.repo_id}, or the token may not see it.",
                mend=f"Ask for access at {DEFAULT_ENDPOINT}/datasets/{self.repo_id} and set HF_TOKEN.",
            ) from error
        except errors.RevisionNotFoundError as error:
            raise NotFound(
                f"{self.access.endpoint} has no commit {self.revision} of {self.repo_id}.",
                code="wrong_revision",
                mend="The source is pinned; check that HF_ENDPOINT names a complete mirror.",
            ) from error
        except errors.EntryNotFoundError as error:
            raise NotFound(
                f"{self.repo_id} at {self.revision} has no file {self.name}.",
                code="missing_file",
                mend="The source is pinned; check that HF_ENDPOINT names a complete mirror.",
            ) from error
        except errors.HfHubHTTPError as error:
            status = error.response.status_code
            if status in (401, 403):
                raise self._gated() from error
            raise Unavailable(
                f"{self.access.endpoint} answered {status} for {self.repo_id}/{self.name}.",
                mend="Try again later; what was downloaded is kept and continued.",
            ) from error
        except Exception as error:
            # The transport's exceptions come from whichever HTTP library the hub client vendors.
            if type(error).__module__.split(".")[0].startswith("httpx"):
                raise self._cut(error) from error
            raise

    def _gated(self) -> Unavailable:
        have = "HF_TOKEN has no access" if self.access.token else "HF_TOKEN is not set"
        return Unavailable(
            f"{self.repo_id} is gated or private, and {have}.",
            code="gated",
            mend=f"Accept its terms at {DEFAULT_ENDPOINT}/datasets/{self.repo_id} and set HF_TOKEN to a token "
            "that may read it.",
        )

    def _cut(self, error: Exception) -> Unavailable:
        return Unavailable(
            f"{self.access.endpoint} cannot be reached or cut the download of {self.repo_id}/{self.name}: "
            f"{type(error).__name__}.",
            code="unreachable",
            mend="Check the network and HF_ENDPOINT, and repeat: what was downloaded is kept and continued.",
        )
