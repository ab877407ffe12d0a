"""The only way to a model: one POST, exactly once, with its evidence.

Nothing here repeats a request, follows a redirect, keeps a cookie or asks the environment for proxies.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import cast

from resources.gateway.exchange import CallLimits, Exchange
from resources.gateway.outcome import CallOutcome
from resources.gateway.pool import ConnectionPool
from resources.gateway.record import End
from resources.gateway.request import ChatRequest
from resources.targets import Target

# Servers drop idle connections after 2 to 5 s (gunicorn, uvicorn, node); one that is dropped just as we send
# loses the call, so ours are given up well before.
_KEEPALIVE_S = 1.5
_STOPPED_FROM_OUTSIDE: frozenset[str] = frozenset({"case_timeout", "run_timeout", "cancelled"})


class GatewayClient:
    """Sends chat completions. Make and close it inside one running event loop: `async with GatewayClient()`.

    It bounds neither connections nor rates: whoever dispatches does.
    """

    def __init__(self) -> None:
        self._pool: ConnectionPool | None = None

    async def __aenter__(self) -> GatewayClient:
        self._pool = ConnectionPool(_KEEPALIVE_S)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    async def send(
        self,
        request: ChatRequest,
        *,
        api_key: str | None,
        limits: CallLimits,
        target: Target,
        on_cancelled: Callable[[CallOutcome], None] | None = None,
        on_decided: Callable[[bool], Awaitable[None]] | None = None,
        on_late_cancel: Callable[[str], None] | None = None,
    ) -> CallOutcome:
        """Send `request` once and read the reply; failures of the call come back as outcomes, not exceptions.

        When the task is cancelled, `on_cancelled` gets the outcome so far with its evidence, then
        CancelledError goes on. The message of the cancellation may name the failure:
        `task.cancel("case_timeout")`, likewise `run_timeout`; otherwise it is `cancelled`.

        `on_decided` is awaited as soon as the exchange is over, with whether the server refused the request,
        before the outcome is worked out: the place to let others send first.

        A cancellation that meets a call whose exchange is over already takes nothing away from it: with
        `on_late_cancel` it is told there, and the outcome returned.
        """
        if self._pool is None:
            raise RuntimeError("the client is not open: use `async with GatewayClient()`")
        call = Exchange(request, api_key, limits, target)
        try:
            await call.run(self._pool)
        except asyncio.CancelledError as error:
            late = call.decided
            call.stopped(_reason(error))
            if not late or on_late_cancel is None:
                if on_cancelled is not None:
                    on_cancelled(call.outcome())
                raise
            _swallow(error, on_late_cancel)
        if on_decided is not None:
            try:
                await on_decided(call.refused)
            except asyncio.CancelledError as error:
                if on_late_cancel is None:
                    if on_cancelled is not None:
                        on_cancelled(call.outcome())
                    raise
                _swallow(error, on_late_cancel)
        return call.outcome()


def _reason(error: asyncio.CancelledError) -> End:
    reason = error.args[0] if error.args else None
    return cast("End", reason) if reason in _STOPPED_FROM_OUTSIDE else "cancelled"


def _swallow(error: asyncio.CancelledError, told: Callable[[str], None]) -> None:
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()
    told(_reason(error))
