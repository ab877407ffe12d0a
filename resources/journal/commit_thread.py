"""Committing in a thread of the process that asks: for runs too small to be worth a process of their own."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import sys
import threading
from collections.abc import Callable, Sequence

from resources.journal.batch import Operation
from resources.journal.group_commit import Answer, GroupCommit

_MAX_BATCH = 256
_SWITCH_S = 0.0005
"""Interpreter lock's switch interval in a process that writes. At the default (5 ms) the thread waits up to that long
after each statement for a busy event loop to let go: measured 1,030 against 1,730 calls/s at 64 in flight."""


class CommitThread:
    """What arrives while one group commits forms the next."""

    def __init__(self, commits: GroupCommit, name: str) -> None:
        self._commits = commits
        self._queue: queue.SimpleQueue[Sequence[Operation] | None] = queue.SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._answered: Callable[[Sequence[Answer]], None] = _ignore
        sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH_S))
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def open(
        self,
        loop: asyncio.AbstractEventLoop,
        answered: Callable[[Sequence[Answer]], None],
        broken: Callable[[Exception], None],
    ) -> None:
        """`answered` is called in `loop` with the answers to operations, in the order in which they were sent;
        `broken` when there will be no more."""
        del broken  # a thread does not die apart from its process
        self._loop, self._answered = loop, answered

    def send(self, operations: Sequence[Operation]) -> None:
        """Have `operations` committed. May raise what a single one of them is at fault of, never does here."""
        self._queue.put(operations)

    def close(self) -> None:
        """Return when all that was sent is committed."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        open_ = True
        while open_:
            batch: list[Operation] = []
            with contextlib.suppress(queue.Empty):
                sent = self._queue.get(timeout=max(self._commits.beat_if_due(), 0.001))
                while True:
                    if sent is None:
                        open_ = False
                    else:
                        batch += sent
                    if len(batch) >= _MAX_BATCH:
                        break
                    sent = self._queue.get_nowait()
            if batch:
                answers = self._commits.commit(batch)
                assert self._loop is not None  # opened before anything was sent
                with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                    self._loop.call_soon_threadsafe(self._answered, answers)
        self._commits.close()


def _ignore(_answers: Sequence[Answer]) -> None:
    return
