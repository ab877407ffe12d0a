"""Connections kept between calls, by where they lead. It bounds none: whoever dispatches does."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Sequence
from typing import NamedTuple

import aiohappyeyeballs

from resources.gateway.connection import Connection

_ADDRESSES_S = 10.0
"""How long a resolved name is used: hundreds of connections opened at once ask the resolver once."""
_SECOND_FAMILY_S = 0.25
"""Head start of the preferred address family (RFC 8305)."""


class Origin(NamedTuple):
    """Where a connection leads."""

    tls: bool
    host: str
    """Name or address as the resolver takes it."""
    port: int


_AddressInfo = tuple[int, int, int, str, tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]]


class ConnectionPool:
    """Opens and keeps connections of one event loop."""

    def __init__(self, keepalive_s: float) -> None:
        self._keepalive_s = keepalive_s
        self._loop = asyncio.get_running_loop()
        self._idle: dict[Origin, list[Connection]] = {}
        self._addresses: dict[Origin, tuple[float, asyncio.Task[Sequence[_AddressInfo]]]] = {}
        self._tls: ssl.SSLContext | None = None
        self._sweep: asyncio.TimerHandle | None = None
        self._closed = False

    async def acquire(self, origin: Origin, timeout_s: float) -> Connection:
        """A connection to `origin` that is ready for a request: the one used last, else a new one.

        Raises `OSError` (also `TimeoutError`, `ssl.SSLError`) when none can be made within `timeout_s` seconds, and
        `UnicodeError` for a host that is no name.
        """
        idle = self._idle.get(origin)
        oldest = self._loop.time() - self._keepalive_s
        while idle:
            connection = idle.pop()
            if connection.usable and connection.idle_since >= oldest:
                return connection
            connection.abort()
        async with asyncio.timeout(timeout_s):
            return await self._open(origin)

    def close(self) -> None:
        """Drop all idle connections; those in use are dropped when they come back."""
        self._closed = True
        if self._sweep is not None:
            self._sweep.cancel()
        for connections in self._idle.values():
            for connection in connections:
                connection.abort()
        self._idle.clear()

    async def _open(self, origin: Origin) -> Connection:
        infos = await self._resolve(origin)
        # Both families are tried side by side, so that a broken IPv6 route costs a moment and not the whole limit.
        opened = await aiohappyeyeballs.start_connection(
            infos, happy_eyeballs_delay=_SECOND_FAMILY_S, interleave=1, loop=self._loop
        )
        try:
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _, connection = await self._loop.create_connection(
                lambda: Connection(lambda connection: self._keep(origin, connection)),
                sock=opened,
                ssl=self._tls_context() if origin.tls else None,
                server_hostname=origin.host if origin.tls else None,
            )
        except BaseException:
            opened.close()
            raise
        return connection

    async def _resolve(self, origin: Origin) -> Sequence[_AddressInfo]:
        known = self._addresses.get(origin)
        now = self._loop.time()
        if known is None or now > known[0]:
            asking = self._loop.create_task(self._ask_resolver(origin))
            known = self._addresses[origin] = (now + _ADDRESSES_S, asking)
        try:
            # Whoever gives up waiting must not take the answer from the others.
            return await asyncio.shield(known[1])
        except Exception:
            self._addresses.pop(origin, None)
            raise

    async def _ask_resolver(self, origin: Origin) -> Sequence[_AddressInfo]:
        return await self._loop.getaddrinfo(origin.host, origin.port, type=socket.SOCK_STREAM)

    def _tls_context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls

    def _keep(self, origin: Origin, connection: Connection) -> None:
        if self._closed:
            connection.abort()
            return
        connection.idle_since = self._loop.time()
        self._idle.setdefault(origin, []).append(connection)
        if self._sweep is None:
            self._sweep = self._loop.call_later(self._keepalive_s, self._drop_old)

    def _drop_old(self) -> None:
        self._sweep = None
        oldest = self._loop.time() - self._keepalive_s
        for origin, connections in list(self._idle.items()):
            kept = [connection for connection in connections if connection.idle_since > oldest]
            for connection in connections:
                if connection.idle_since <= oldest:
                    connection.abort()
            if kept:
                self._idle[origin] = kept
            else:
                del self._idle[origin]
        if self._idle:
            self._sweep = self._loop.call_later(self._keepalive_s / 2, self._drop_old)
