"""Heavy work of many tasks on one event loop, one piece a turn of the loop."""

from __future__ import annotations

import asyncio
from collections import deque


class Turnstile:
    """Lets one waiting task through in each turn of the loop.

    Replies tend to arrive together. Worked out on the spot, all of them would stand before the requests that
    could leave meanwhile, and the server would idle; through here sends and reads of others come in between.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._turning = False

    def through(self) -> asyncio.Future[None]:
        """Await the result to be let through."""
        waiting: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append(waiting)
        if not self._turning:
            self._turning = True
            self._loop.call_soon(self._turn)
        return waiting

    def _turn(self) -> None:
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(None)
                break
        if self._waiting:
            self._loop.call_soon(self._turn)
        else:
            self._turning = False
