"""One HTTP/1.1 connection: writes a request, hands each network read of the response to its receiver.

Parsing is httptools' (llhttp, the parser of Node.js). It is used directly because evidence needs what client libraries
hide: the bytes of every network read with the instant at which it came, also of a response that breaks off.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable
from typing import Protocol, cast

import httptools

_MAX_HEAD_BYTES = 1048576
"""Of a response's head with its interim responses. A router's receipt of many child calls is one long header."""

_FRAMING = (b"content-length", b"transfer-encoding")

Headers = list[tuple[bytes, bytes]]


class ProtocolError(Exception):
    """What the server sent is no HTTP response."""


class Receiver(Protocol):
    """Takes one response. Nothing is called any more after `complete` or `broken`."""

    def head(self, status: int, headers: Headers) -> None:
        """The final response's status and headers (interim ones, 1xx, are passed over)."""

    def body(self, data: bytes) -> None:
        """What one network read brought of the body, transfer coding removed."""

    def complete(self) -> None:
        """The response is over as its framing says."""

    def broken(self, error: Exception | None) -> None:
        """The connection ended before the response did; None: the server closed it."""


class Connection(asyncio.Protocol):
    """Serves one exchange at a time. `idle` is called whenever it can take the next one."""

    __slots__ = (
        "_arrivals",
        "_complete",
        "_has_head",
        "_head_bytes",
        "_headers",
        "_idle",
        "_interim",
        "_parser",
        "_pieces",
        "_receiver",
        "_reusable",
        "_status",
        "_transport",
        "_until_close",
        "idle_since",
    )

    def __init__(self, idle: Callable[[Connection], None]) -> None:
        self.idle_since = 0.0
        """Kept by the pool (loop time)."""
        self._idle = idle
        self._transport: asyncio.Transport | None = None
        self._arrivals = select.poll()
        self._receiver: Receiver | None = None
        self._reset()

    @property
    def usable(self) -> bool:
        """Whether a request may be written: connected, nobody else's, and nothing to read.

        What has arrived on an idle connection, but was not read yet, is its end or bytes that nobody asked for, which
        would be taken for the next response.
        """
        transport = self._transport
        return (
            transport is not None
            and self._receiver is None
            and not transport.is_closing()
            and not self._arrivals.poll(0)
        )

    def exchange(self, head: bytes, body: bytes, receiver: Receiver) -> None:
        """Write a request; `receiver` gets the response. Only while `usable`."""
        assert self._transport is not None  # `usable` says so
        self._reset()
        self._receiver = receiver
        self._transport.write(head + body)

    def abort(self) -> None:
        """Drop the connection at once; the receiver hears nothing more."""
        self._receiver = None
        if self._transport is not None:
            self._transport.abort()

    # what the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._arrivals.register(transport.get_extra_info("socket").fileno(), select.POLLIN)

    def data_received(self, data: bytes) -> None:
        receiver = self._receiver
        if receiver is None:
            # Nobody asked: whatever this is, the next response would be taken for it.
            self.abort()
            return
        had_head = self._has_head
        error: ProtocolError | None = None
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as problem:
            error = ProtocolError(f"not an HTTP response: {problem}")
        if not self._has_head:
            self._head_bytes += len(data)
            if self._head_bytes > _MAX_HEAD_BYTES:
                error = ProtocolError(f"the head of the response is longer than {_MAX_HEAD_BYTES} bytes")
        elif not had_head:
            receiver.head(self._status, self._headers)
        if self._pieces:
            piece = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
            self._pieces.clear()
            receiver.body(piece)
        if self._receiver is not receiver:  # it gave the connection up meanwhile
            return
        if self._complete:
            self._release(reusable=self._reusable and error is None)
            receiver.complete()
        elif error is not None:
            self.abort()
            receiver.broken(error)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        receiver, self._receiver = self._receiver, None
        if receiver is None:
            return
        if exc is None and self._has_head and self._until_close:
            receiver.complete()
        else:
            receiver.broken(exc)

    # what the parser calls

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._has_head:  # later ones are trailers
            self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        if self._complete:
            return
        status = self._parser.get_status_code()
        if 100 <= status < 200 and status != 101:
            self._interim = True
            self._headers = []
            return
        self._status = status
        self._has_head = True
        self._until_close = not any(name in _FRAMING for name, _ in self._headers)
        self._reusable = not self._until_close and self._parser.should_keep_alive()

    def on_body(self, data: bytes) -> None:
        if not self._complete:
            self._pieces.append(data)

    def on_message_begin(self) -> None:
        if self._complete:  # more than was asked for
            self._reusable = False

    def on_message_complete(self) -> None:
        if self._interim:
            self._interim = False
        else:
            self._complete = True

    def _reset(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        # As browsers and client libraries read responses: gateways fold headers and end lines with LF alone.
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        self._headers: Headers = []
        self._pieces: list[bytes] = []
        self._status = 0
        self._head_bytes = 0
        self._has_head = self._interim = self._complete = self._until_close = self._reusable = False

    def _release(self, *, reusable: bool) -> None:
        self._receiver = None
        transport = self._transport
        if transport is None:
            return
        # A response before the whole request was taken: the rest would still be written.
        if reusable and not transport.is_closing() and transport.get_write_buffer_size() == 0:
            self._idle(self)
        else:
            transport.close()
