"""Absolute and idle limits of one call, with a single timer that is re-armed only when it fires."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Literal

from resources.gateway.timer import Timer

TimeLimit = Literal["stall", "total_timeout"]


class CallClock:
    """Calls `expired` once, with the limit that was reached, unless stopped before.

    Progress costs one assignment (`touch`): the timer looks at the last progress when it fires and sleeps on
    if there was some.
    """

    __slots__ = ("_deadline", "_expired", "_idle", "_last", "_loop", "_timer")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        deadline: float,
        idle_s: float | None,
        expired: Callable[[TimeLimit], None],
    ) -> None:
        """`deadline` is an instant of `time.monotonic`; without `idle_s` idleness is not minded."""
        self._loop = loop
        self._deadline = deadline
        self._idle = idle_s
        self._expired = expired
        self._last = 0.0
        self._timer: Timer | None = None

    def start(self) -> None:
        self._last = time.monotonic()
        self._arm()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def touch(self, now: float) -> None:
        """Something arrived at `now` (monotonic seconds)."""
        self._last = now

    def watch_idle(self, idle_s: float) -> None:
        """From now on mind idleness too."""
        if self._idle is None:
            self._idle = idle_s
            self._last = time.monotonic()
            self.stop()
            self._arm()

    def _arm(self) -> None:
        when = self._deadline if self._idle is None else min(self._deadline, self._last + self._idle)
        self._timer = Timer(self._loop, when - time.monotonic(), self._fire)

    def _fire(self) -> None:
        self._timer = None
        now = time.monotonic()
        if now >= self._deadline:
            self._expired("total_timeout")
        elif self._idle is not None and now >= self._last + self._idle:
            self._expired("stall")
        else:
            self._arm()
