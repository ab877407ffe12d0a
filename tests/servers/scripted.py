"""A loopback HTTP server whose every answer is a script: bytes, pauses, cuts. Real sockets, no HTTP library."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field


@dataclass
class Connection:
    """One accepted connection and the request that is being answered."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    head: bytes = b""
    body: bytes = b""

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def stream(self, data: bytes, *, end: bool = True) -> None:
        """A 200 event stream holding `data` in one HTTP chunk; without `end` the chunked body stays open."""
        await self.send(STREAM_HEAD + chunk(data) + (LAST_CHUNK if end else b""))

    def reset(self) -> None:
        """Break the connection with a TCP reset."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    async def gone(self) -> bool:
        """Wait until the client closes; false if it sends something more instead."""
        try:
            return not await self.reader.read(1)
        except ConnectionError:
            return True


STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    """`data` as one chunk of a chunked body."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def whole(status: int, body: bytes, *headers: str) -> bytes:
    """A response with Content-Length."""
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


Script = Callable[[Connection], Awaitable[None]]


@dataclass
class ScriptedServer:
    """`async with ScriptedServer(script) as server:` answers each request by `script`.

    A script that closes or resets its connection ends it; otherwise the connection is kept alive.
    """

    script: Script
    requests: list[tuple[bytes, bytes]] = field(default_factory=list)
    """Head and body of every request that arrived whole."""
    connections: int = 0
    port: int = 0

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def __aenter__(self) -> ScriptedServer:
        self._tasks: set[asyncio.Task[None]] = set()
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, backlog=1024)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        connection = Connection(reader, writer)
        try:
            while not writer.is_closing():
                connection.head = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    int(line.split(b":")[1])
                    for line in connection.head.split(b"\r\n")
                    if line.lower().startswith(b"content-length:")
                )
                connection.body = await reader.readexactly(length)
                self.requests.append((connection.head, connection.body))
                await self.script(connection)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            return
        finally:
            writer.close()
            self._tasks.discard(task)
