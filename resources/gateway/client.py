"""The only way to a model: one POST, exactly once, with its evidence.

Built on aiohttp, whose connection pool stays cheap with hundreds of connections. Nothing here repeats a
request: aiohttp itself retries only idempotent methods, and a POST is none. Redirects, proxies, cookies and
netrc are off.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import cast

import aiohttp

from resources.gateway.exchange import CallLimits, Exchange
from resources.gateway.outcome import CallOutcome
from resources.gateway.record import End
from resources.gateway.request import ChatRequest
from resources.targets import Target

# Servers drop idle connections after 2 to 5 s (gunicorn, uvicorn, node); one that is dropped just as we send
# loses the call, so ours are given up well before.
_KEEPALIVE_S = 1.5
_STOPPED_FROM_OUTSIDE: frozenset[str] = frozenset({"case_timeout", "run_timeout", "cancelled"})
_MAX_HEADER_BYTES = 262144


class GatewayClient:
    """Sends chat completions. Make and close it inside one running event loop: `async with GatewayClient()`.

    It bounds neither connections nor rates: whoever dispatches does.
    """

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None
        self._timeouts: dict[float, aiohttp.ClientTimeout] = {}

    async def __aenter__(self) -> GatewayClient:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEPALIVE_S),
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            # A router's receipt of many child calls is one long header.
            max_line_size=_MAX_HEADER_BYTES,
            max_field_size=_MAX_HEADER_BYTES,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def send(
        self,
        request: ChatRequest,
        *,
        api_key: str | None,
        limits: CallLimits,
        target: Target,
        on_cancelled: Callable[[CallOutcome], None] | None = None,
        on_decided: Callable[[bool], Awaitable[None]] | None = None,
    ) -> CallOutcome:
        """Send `request` once and read the reply; failures of the call come back as outcomes, not exceptions.

        When the task is cancelled, `on_cancelled` gets the outcome so far with its evidence, then
        CancelledError goes on. The message of the cancellation may name the failure:
        `task.cancel("case_timeout")`, likewise `run_timeout`; otherwise it is `cancelled`.

        `on_decided` is awaited as soon as the exchange is over, with whether the server refused the request,
        before the outcome is worked out: the place to let others send first.
        """
        if self._session is None:
            raise RuntimeError("the client is not open: use `async with GatewayClient()`")
        timeout = self._timeouts.get(limits.connect_timeout_s)
        if timeout is None:
            timeout = aiohttp.ClientTimeout(total=None, connect=limits.connect_timeout_s)
            self._timeouts[limits.connect_timeout_s] = timeout
        call = Exchange(request, api_key, limits, target)
        try:
            with call.clock:
                await call.run(self._session, timeout)
            if call.clock.expired is not None:
                call.stopped(call.clock.expired)
            if on_decided is not None:
                await on_decided(call.refused)
        except asyncio.CancelledError as error:
            reason = error.args[0] if error.args else None
            call.stopped(cast("End", reason) if reason in _STOPPED_FROM_OUTSIDE else "cancelled")
            if on_cancelled is not None:
                on_cancelled(call.outcome())
            raise
        return call.outcome()
