"""One HTTP exchange: the state from which outcome and evidence are made, at whatever instant it stops."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from aiohttp.payload import BytesPayload
from yarl import URL

from resources.gateway.call_clock import CallClock
from resources.gateway.evidence import Evidence, encode_evidence, kept_headers, rebuild_reply
from resources.gateway.guards import OutputGuard, OutputLimits
from resources.gateway.outcome import CallOutcome, is_refusal, retry_after_seconds
from resources.gateway.record import End, Verdict, no_response
from resources.gateway.redaction import without_key
from resources.gateway.reply import ReplyBuilder
from resources.gateway.request import ChatRequest
from resources.gateway.router import RouterReceipt, read_receipt
from resources.targets import Target

# After [DONE] the end of the body is awaited this long, so that the connection can be used again.
_DRAIN_S = 0.1


class CallLimits(OutputLimits, Protocol):
    """The frozen plan's bounds on one call (`Limits` of the manifest). Times in seconds."""

    @property
    def connect_timeout_s(self) -> float: ...
    @property
    def total_timeout_s(self) -> float: ...
    @property
    def idle_timeout_s(self) -> float: ...
    @property
    def max_log_bytes(self) -> int: ...


class _MarkedBody(BytesPayload):
    """A request body that remembers whether any of it was handed to the transport."""

    started = False

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        self.started = True
        await super().write_with_length(writer, content_length)


class Exchange:
    """One call in flight. Run it inside its `clock`; then, or after `stopped`, ask for its `outcome`."""

    def __init__(self, request: ChatRequest, api_key: str | None, limits: CallLimits, target: Target) -> None:
        self._request = request
        self._key = api_key
        self._limits = limits
        self._target = target
        self._loop = asyncio.get_running_loop()
        self._started_at = time.time()
        self._t0 = time.monotonic()
        self.clock = CallClock(
            self._loop, limits.total_timeout_s, limits.idle_timeout_s if request.stream else None
        )
        self._body = _MarkedBody(request.body)
        self._response: aiohttp.ClientResponse | None = None
        self._headers: dict[str, str] = {}
        self._headers_us: int | None = None
        self._builder: ReplyBuilder | None = None
        self._chunks: list[bytes] = []
        self._read_us: list[int] = []
        self._size = 0
        self._ttft: float | None = None
        self._end: End | None = None
        self._end_at = self._t0
        self._verdict: Verdict | None = None
        self._detail: str | None = None

    async def run(self, session: aiohttp.ClientSession, timeout: aiohttp.ClientTimeout) -> None:
        """Send and read until the call is decided; sets `_end` unless the task is cancelled."""
        headers = dict(self._request.headers)
        if self._key is not None:
            headers["Authorization"] = f"Bearer {self._key}"
        try:
            response = await session.post(
                URL(self._request.url),
                data=self._body,
                headers=headers,
                allow_redirects=False,
                timeout=timeout,
            )
        except (aiohttp.ConnectionTimeoutError, aiohttp.ClientConnectorError, aiohttp.InvalidURL) as error:
            self._finish("connect_error", error)
            return
        except (aiohttp.ClientError, OSError) as error:
            self._finish("connection_lost", error)
            return
        self._response = response
        self._head(response)
        try:
            await self._read(response.content)
        except (aiohttp.ClientError, OSError) as error:
            self._take_leftover()
            self._finish("reset", error)
        finally:
            if not response.content.at_eof():
                response.close()

    def _head(self, response: aiohttp.ClientResponse) -> None:
        now = time.monotonic()
        self.clock.touch(now)
        self._headers_us = int((now - self._t0) * 1e6)
        self._headers = kept_headers(response.headers)
        self._builder = ReplyBuilder(response.status, self._headers, OutputGuard(self._limits))

    async def _read(self, content: aiohttp.StreamReader) -> None:
        while self._end is None:
            chunk = await content.readany()
            if not chunk:
                self._finish("eof")
            else:
                self._take(chunk)
                if not self._request.stream:
                    # A whole reply may be long in coming, but once it has begun it must not stop.
                    self.clock.watch_idle(self._limits.idle_timeout_s)
        stopped_by_us = self._verdict is not None or (self._builder and self._builder.verdict)
        if not stopped_by_us and not content.at_eof():
            await self._drain(content)

    async def _drain(self, content: aiohttp.StreamReader) -> None:
        """After the decisive event: wait a moment for the end of the body, keeping what still comes."""
        try:
            async with asyncio.timeout(_DRAIN_S):
                while chunk := await content.readany():
                    self._take(chunk)
        except (TimeoutError, aiohttp.ClientError, OSError):
            # Whatever happens after the decisive event is of no interest; the connection is closed.
            return

    def _take(self, chunk: bytes) -> None:
        """Keep and parse one read of the body, up to the limit of kept bytes."""
        builder = self._builder
        if builder is None:
            return
        now = time.monotonic()
        self.clock.touch(now)
        room = self._limits.max_log_bytes - self._size
        over = len(chunk) > room
        if over:
            chunk = chunk[:room]
        if chunk:
            self._size += len(chunk)
            self._chunks.append(chunk)
            self._read_us.append(int((now - self._t0) * 1e6))
            builder.feed(chunk)
            if self._ttft is None and builder.parts.has_output:
                self._ttft = now - self._t0
        if self._end is None:
            if builder.finished:
                self._finish("eof")
            elif over:
                self._verdict = "log_bytes_limit"
                self._finish("eof")

    def _take_leftover(self) -> None:
        """Bytes that arrived before the break: aiohttp raises its error before it gives them out."""
        if self._response is None:
            return
        content = self._response.content
        # No public way to them, yet they are evidence (and may hold [DONE]); a test cuts streams at every
        # byte.
        pieces = list(getattr(content, "_buffer", ()))
        if pieces:
            pieces[0] = pieces[0][getattr(content, "_buffer_offset", 0) :]
            self._take(b"".join(pieces))

    def _finish(self, end: End, error: BaseException | None = None) -> None:
        if self._end is None:
            self._end = end
            self._end_at = time.monotonic()
            if error is not None:
                self._detail = f"{type(error).__name__}: {error}"[:300]

    def stopped(self, end: End) -> None:
        """The task was cancelled, by a limit or from outside."""
        if self._end is None:
            self._take_leftover()
            self._finish(end)
        if self._response is not None:
            self._response.close()

    @property
    def refused(self) -> bool:
        """Whether the response's head refuses the request."""
        return self._response is not None and is_refusal(self._response.status, self._headers)

    def outcome(self) -> CallOutcome:
        """What the call came to, with its evidence."""
        end: End = self._end or "cancelled"
        response = self._response
        receipt = None if response is None else read_receipt(self._headers)
        if self._builder is None or response is None:
            reply = no_response(end, self._detail)
            status = None
        else:
            status = response.status
            if self._unacknowledged(receipt):
                self._verdict = self._verdict or "config_hash_mismatch"
            reply = self._builder.finish(end, self._verdict)
            self._verdict = self._builder.verdict
        evidence = Evidence(
            request_sha256=self._request.sha256,
            started_at=self._started_at,
            http_status=status,
            headers=self._headers,
            headers_us=self._headers_us,
            read_sizes=[len(chunk) for chunk in self._chunks],
            read_us=self._read_us,
            end=end,
            verdict=self._verdict,
            end_us=int((self._end_at - self._t0) * 1e6),
            never_sent=not self._body.started,
            detail=self._detail,
            redacted=False,
            body=b"".join(self._chunks),
        )
        clean = without_key(evidence, self._key)
        if clean is not None:
            evidence = clean
            reply = rebuild_reply(evidence)
            receipt = read_receipt(evidence.headers) if receipt is not None else None
        data, digest = encode_evidence(evidence)
        headers = evidence.headers
        return CallOutcome(
            kind="refused" if self.refused else reply.call_status,
            reply=reply,
            end=end,
            http_status=status,
            headers=headers,
            retry_after_s=retry_after_seconds(headers.get("retry-after"), time.time()),
            ttft_s=None if "not_streamed" in reply.flags else self._ttft,
            latency_s=self._end_at - self._t0,
            started_at=self._started_at,
            evidence=data,
            evidence_sha256=digest,
            receipt=receipt,
            lab=headers.get("x-sr-bench-lab") == "1",
            never_sent=evidence.never_sent,
            detail=evidence.detail,
        )

    def _unacknowledged(self, receipt: RouterReceipt | None) -> bool:
        """A live MoM call must acknowledge the config hash that the plan froze."""
        frozen = self._target.config_hash
        if self._target.kind != "mom" or frozen is None:
            return False
        return receipt is None or receipt.config_hash != frozen
