"""A hub on loopback that speaks Hugging Face's download protocol, as the installed client really uses it.

HEAD and GET of /datasets/<repo>/resolve/<revision>/<file>. Small files are answered in place with their git blob id
as ETag; large ones (LFS) by a redirect to a storage address, with the SHA-256 in X-Linked-Etag. Ranges, gated
repositories (401 without a token, 403 with one that has no access), unknown revisions and files, and faults on demand:
cut connections, changed bytes, another commit, a full outage.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from aiohttp import web


@dataclass(frozen=True)
class Seen:
    """One request that arrived."""

    method: str
    path: str
    range: str | None
    authorization: str | None


@dataclass
class Faults:
    """What goes wrong, by file name."""

    cut_after: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    """Bytes after which each successive GET of the file is cut."""
    changed_byte: set[str] = field(default_factory=set[str])
    """Files whose last byte is sent wrong, while the stated hash stays right."""
    other_commit: str | None = None
    """Stated as the served commit."""
    broken: bool = False
    """Answer 500 to everything."""
    delay_s: float = 0.0
    """Pause before the body of a GET."""


class HubServer:
    """`with HubServer({repo: {revision: {file: bytes}}}) as hub:` and set HF_ENDPOINT to `hub.url`."""

    def __init__(
        self,
        repos: Mapping[str, Mapping[str, Mapping[str, bytes]]],
        *,
        gated: Mapping[str, str] | None = None,
        lfs_from: int = 1000,
    ) -> None:
        """`gated`: repository → the token that may read it. Files of `lfs_from` bytes and more are large files."""
        self.repos = {repo: {rev: dict(files) for rev, files in revs.items()} for repo, revs in repos.items()}
        self.gated = dict(gated or {})
        self.lfs_from = lfs_from
        self.faults = Faults()
        self.seen: list[Seen] = []
        self.url = ""
        self.storage_url = ""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    @classmethod
    def of_folder(
        cls, root: Path, revisions: Mapping[str, str], gated: Mapping[str, str] | None = None
    ) -> HubServer:
        """Serve `root/<repo>/…` at the commit that `revisions` states for each repository."""
        repos = {
            repo: {
                revision: {
                    path.relative_to(root / repo).as_posix(): path.read_bytes()
                    for path in sorted((root / repo).rglob("*"))
                    if path.is_file()
                }
            }
            for repo, revision in revisions.items()
        }
        return cls(repos, gated=gated)

    def gets(self, name: str) -> list[Seen]:
        """The GET requests of a file's bytes, wherever they were answered."""
        return [seen for seen in self.seen if seen.method == "GET" and seen.path.endswith(name)]

    def __enter__(self) -> HubServer:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _start(self) -> None:
        app = web.Application()
        app.router.add_route("*", "/datasets/{owner}/{name}/resolve/{revision}/{file:.+}", self._resolve)
        app.router.add_route("GET", "/storage/{owner}/{name}/{revision}/{file:.+}", self._storage)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{port}"
        # Another host name, as real storage has: the client must not send its token there.
        self.storage_url = f"http://localhost:{port}"

    def _note(self, request: web.Request) -> None:
        self.seen.append(
            Seen(
                request.method,
                request.path,
                request.headers.get("Range"),
                request.headers.get("Authorization"),
            )
        )

    async def _resolve(self, request: web.Request) -> web.StreamResponse:
        self._note(request)
        if self.faults.broken:
            return web.Response(status=500)
        repo = f"{request.match_info['owner']}/{request.match_info['name']}"
        revision, name = request.match_info["revision"], request.match_info["file"]
        if refusal := self._refusal(request, repo, revision, name):
            return refusal
        data = self.repos[repo][revision][name]
        headers = {
            "X-Repo-Commit": self.faults.other_commit or revision,
            "Accept-Ranges": "bytes",
        }
        if len(data) >= self.lfs_from:
            headers["X-Linked-Etag"] = f'"{hashlib.sha256(data).hexdigest()}"'
            headers["X-Linked-Size"] = str(len(data))
            headers["ETag"] = f'"{hashlib.md5(data).hexdigest()}"'
            headers["Location"] = f"{self.storage_url}/storage/{repo}/{revision}/{name}"
            return web.Response(status=302, headers=headers)
        blob = hashlib.sha1(f"blob {len(data)}\0".encode() + data).hexdigest()
        headers["ETag"] = f'"{blob}"'
        return await self._body(request, name, data, headers)

    async def _storage(self, request: web.Request) -> web.StreamResponse:
        self._note(request)
        info = request.match_info
        data = self.repos[f"{info['owner']}/{info['name']}"][info["revision"]][info["file"]]
        return await self._body(request, info["file"], data, {"Accept-Ranges": "bytes"})

    def _refusal(self, request: web.Request, repo: str, revision: str, name: str) -> web.Response | None:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if repo not in self.repos:
            if not token:
                return web.Response(status=401, text="Invalid username or password.")
            return web.Response(status=404, headers={"X-Error-Code": "RepoNotFound"})
        if repo in self.gated and token != self.gated[repo]:
            status = 403 if token else 401
            return web.Response(
                status=status,
                headers={
                    "X-Error-Code": "GatedRepo",
                    "X-Error-Message": f"Access to dataset {repo} is restricted.",
                },
            )
        if revision not in self.repos[repo]:
            return web.Response(status=404, headers={"X-Error-Code": "RevisionNotFound"})
        if name not in self.repos[repo][revision]:
            headers = {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": revision}
            return web.Response(status=404, headers=headers)
        return None

    async def _body(
        self, request: web.Request, name: str, data: bytes, headers: dict[str, str]
    ) -> web.StreamResponse:
        if name in self.faults.changed_byte:
            data = data[:-1] + bytes([data[-1] ^ 1])
        first = 0
        asked = request.headers.get("Range")
        if asked:
            first = int(asked.removeprefix("bytes=").split("-")[0])
            headers["Content-Range"] = f"bytes {first}-{len(data) - 1}/{len(data)}"
        if request.method == "GET":
            await asyncio.sleep(self.faults.delay_s)
        response = web.StreamResponse(status=206 if asked else 200, headers=headers)
        response.content_length = len(data) - first
        await response.prepare(request)
        if request.method == "HEAD":
            return response
        cuts = self.faults.cut_after.get(name)
        if cuts:
            await response.write(data[first : first + cuts.pop(0)])
            await asyncio.sleep(0.05)
            if request.transport is not None:
                request.transport.close()
            return response
        await response.write(data[first:])
        await response.write_eof()
        return response
