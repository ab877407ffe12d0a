"""One HTTP exchange: the state from which outcome and evidence are made, at whatever instant it stops."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol

from resources.gateway.address import post_address, request_head
from resources.gateway.call_clock import CallClock
from resources.gateway.connection import Connection, Headers
from resources.gateway.evidence import Evidence, encode_evidence, kept_headers
from resources.gateway.guards import OutputGuard, OutputLimits
from resources.gateway.outcome import CallOutcome, is_refusal, retry_after_seconds
from resources.gateway.pool import ConnectionPool
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


class Exchange:
    """One call in flight, the receiver of its response. `run` it; then, or after `stopped`, ask for its `outcome`."""

    def __init__(self, request: ChatRequest, api_key: str | None, limits: CallLimits, target: Target) -> None:
        self._request = request
        self._key = api_key
        self._limits = limits
        self._target = target
        self._loop = asyncio.get_running_loop()
        self._started_at = time.time()
        self._t0 = time.monotonic()
        idle_s = limits.idle_timeout_s if request.stream else None
        self._clock = CallClock(self._loop, self._t0 + limits.total_timeout_s, idle_s, self.stopped)
        self._connection: Connection | None = None
        self._sent = False
        self._over: asyncio.Future[None] = self._loop.create_future()
        self._draining: asyncio.TimerHandle | None = None
        self._status: int | None = None
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

    async def run(self, pool: ConnectionPool) -> None:
        """Send and read until the call is decided; sets `_end` unless the task is cancelled."""
        try:
            address = post_address(self._request.url)
            head = request_head(address, self._request.headers, self._key, len(self._request.body))
            connection = await pool.acquire(
                address.origin, min(self._limits.connect_timeout_s, self._limits.total_timeout_s)
            )
        except (OSError, ValueError) as error:
            total = isinstance(error, TimeoutError) and self._over_time()
            self._finish("total_timeout" if total else "connect_error", error)
            return
        self._connection = connection
        self._clock.start()
        self._sent = True
        connection.exchange(head, self._request.body, self)
        await self._over

    def _over_time(self) -> bool:
        return time.monotonic() >= self._t0 + self._limits.total_timeout_s

    # what the connection calls

    def head(self, status: int, headers: Headers) -> None:
        """The response's head has arrived."""
        now = time.monotonic()
        self._clock.touch(now)
        self._headers_us = int((now - self._t0) * 1e6)
        self._status = status
        self._headers = kept_headers(headers)
        self._builder = ReplyBuilder(status, self._headers, OutputGuard(self._limits))

    def body(self, data: bytes) -> None:
        """Keep and parse one read of the body, up to the limit of kept bytes."""
        builder = self._builder
        if builder is None:
            return
        now = time.monotonic()
        self._clock.touch(now)
        if not self._request.stream:
            # A whole reply may be long in coming, but once it has begun it must not stop.
            self._clock.watch_idle(self._limits.idle_timeout_s)
        room = self._limits.max_log_bytes - self._size
        over = len(data) > room
        if over:
            data = data[:room]
        if data:
            self._size += len(data)
            self._chunks.append(data)
            self._read_us.append(int((now - self._t0) * 1e6))
            builder.feed(data)
            if self._ttft is None and builder.parts.has_output:
                self._ttft = now - self._t0
        if self._end is None and (builder.finished or over):
            if not builder.finished:
                self._verdict = "log_bytes_limit"
            self._finish("eof")
            if self._verdict is not None or builder.verdict is not None:
                self._hang_up()
            else:
                # The end of the body may still be on its way; with it the connection can be used again.
                self._draining = self._loop.call_later(_DRAIN_S, self._hang_up)

    def complete(self) -> None:
        """The body is over."""
        self._finish("eof")
        self._let_go()

    def broken(self, error: Exception | None) -> None:
        """The connection ended first."""
        # Whatever happens after the decisive event is of no interest.
        self._finish(
            "connection_lost" if self._status is None else "reset", error or EOFError("the server hung up")
        )
        self._let_go()

    def _finish(self, end: End, error: BaseException | None = None) -> None:
        if self._end is None:
            self._end = end
            self._end_at = time.monotonic()
            if error is not None:
                self._detail = f"{type(error).__name__}: {error}"[:300]

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.abort()
        self._let_go()

    def _let_go(self) -> None:
        self._connection = None
        self._clock.stop()
        if self._draining is not None:
            self._draining.cancel()
            self._draining = None
        if not self._over.done():
            self._over.set_result(None)

    def stopped(self, end: End) -> None:
        """End the call now: a limit was reached, or the task is cancelled."""
        self._finish(end)
        self._hang_up()

    @property
    def decided(self) -> bool:
        """Whether the end of the call is known; a stop changes nothing of it any more."""
        return self._end is not None

    @property
    def refused(self) -> bool:
        """Whether the response's head refuses the request."""
        return self._status is not None and is_refusal(self._status, self._headers)

    def outcome(self) -> CallOutcome:
        """What the call came to, with its evidence."""
        end: End = self._end or "cancelled"
        status = self._status
        receipt = None if status is None else read_receipt(self._headers)
        if self._builder is None:
            reply = no_response(end, self._detail)
        else:
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
            never_sent=not self._sent,
            detail=self._detail,
            redacted=False,
            body=b"".join(self._chunks),
        )
        clean = without_key(evidence, reply, self._key)
        if clean is not None:
            evidence, reply = clean
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
