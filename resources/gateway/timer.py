"""A timer for limits on what others do, which knows when it was this process that stood still."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

_SLEPT_S = 0.5
"""A timer this late tells that the process was stopped or the machine asleep."""
_READING_S = 0.1
"""Time to read what arrived meanwhile: only then is it known whether anything was late."""


class Timer:
    """Calls `callback` once, `delay_s` seconds from now, unless cancelled before."""

    __slots__ = ("_callback", "_due", "_handle", "_loop")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, delay_s: float, callback: Callable[[], object]
    ) -> None:
        self._loop = loop
        self._callback = callback
        delay_s = max(0.0, delay_s)
        # The system's clock: uvloop's own is rounded to milliseconds, and stands still with the loop.
        self._due = time.monotonic() + delay_s
        self._handle = loop.call_later(delay_s, self._fire)

    def cancel(self) -> None:
        self._handle.cancel()

    def _fire(self) -> None:
        now = time.monotonic()
        if now > self._due + _SLEPT_S:
            self._due = now
            self._handle = self._loop.call_later(_READING_S, self._fire)
        else:
            self._callback()
