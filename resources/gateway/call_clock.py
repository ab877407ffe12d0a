"""Absolute and idle limits of one call, with a single timer that is re-armed only when it fires."""

from __future__ import annotations

import asyncio
import time
from types import TracebackType
from typing import Literal


class CallClock:
    """An async context that cancels its task once the call has taken or idled too long.

    Progress costs one assignment (`touch`): the timer looks at the last progress when it fires and sleeps on
    if there was some. A cancellation of our own is turned into `expired`; one from outside passes through.
    """

    __slots__ = ("_cancelling", "_deadline", "_handle", "_idle", "_last", "_loop", "_task", "expired")

    def __init__(self, loop: asyncio.AbstractEventLoop, total_s: float, idle_s: float | None) -> None:
        self._loop = loop
        self._deadline = time.monotonic() + total_s
        self._idle = idle_s
        self._last = time.monotonic()
        self._handle: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        self.expired: Literal["stall", "total_timeout"] | None = None

    def touch(self, now: float) -> None:
        """Something arrived at `now` (monotonic seconds)."""
        self._last = now

    def watch_idle(self, idle_s: float) -> None:
        """From now on mind idleness too."""
        if self._idle is None:
            self._idle = idle_s
            self._last = time.monotonic()
            self._arm()

    def __enter__(self) -> CallClock:
        self._task = asyncio.current_task()
        if self._task is None:
            raise RuntimeError("a call needs a task to be cancelled")
        self._cancelling = self._task.cancelling()
        self._arm()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        if self.expired is None or self._task is None:
            return False
        # As asyncio.timeout does: swallow the cancellation only if it was ours alone.
        ours_alone = self._task.uncancel() <= self._cancelling
        return ours_alone and kind is asyncio.CancelledError

    def _arm(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        when = self._deadline if self._idle is None else min(self._deadline, self._last + self._idle)
        self._handle = self._loop.call_at(when, self._fire)

    def _fire(self) -> None:
        self._handle = None
        now = time.monotonic()
        if now >= self._deadline:
            self.expired = "total_timeout"
        elif self._idle is not None and now >= self._last + self._idle:
            self.expired = "stall"
        else:
            self._arm()
            return
        if self._task is not None:
            self._task.cancel()
