"""One file of a Hugging Face hub: asked for, downloaded, continued where it was cut, and verified."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from resources.errors import IntegrityError, NotFound, Unavailable
from resources.sources.fetched import FetchedFile, Progress, hash_file

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


def verified(path: Path, etag: str, size: int | None) -> bool:
    """Whether a file has the size and the hash (SHA-256, or git blob id) that a hub states."""
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


@dataclass(frozen=True)
class Download:
    """One file of a repository at a commit, and where it is to lie."""

    access: HubAccess
    repo_id: str
    revision: str
    name: str
    target: Path

    def run(self, progress: Progress) -> FetchedFile:
        """Download into a partial file that survives a crash, verify it, and move it in place."""
        url, metadata, etag = self.stated()
        self.target.parent.mkdir(parents=True, exist_ok=True)
        # Named by what the hub states of the content: a partial file of other content is never continued.
        partial = self.target.with_name(f"{self.target.name}.{etag[:16]}.part")
        resumed = partial.exists() and partial.stat().st_size > 0
        self._download(url, metadata, partial, progress)
        if resumed and not verified(partial, etag, metadata.size):
            partial.unlink()
            self._download(url, metadata, partial, progress)
        if not verified(partial, etag, metadata.size):
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

    def stated(self) -> tuple[str, HfFileMetadata, str]:
        """The file's address, what the hub states of it, and the hash among that."""
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
        return url, metadata, self._checked_etag(metadata)

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
                    if size is not None and stream.tell() > size:
                        break  # more than was stated: what came is refused by its size
                    progress(self.name, stream.tell(), size)

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
