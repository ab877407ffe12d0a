"""The journal's writer: what an event loop asks for, handed to whoever commits in groups, and the answers awaited."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from resources.errors import SrBenchError
from resources.journal.batch import Operation, finish
from resources.journal.calls import CallEnd, Dispatch
from resources.journal.commit_thread import CommitThread
from resources.journal.connection import Journal
from resources.journal.group_commit import Answer, GroupCommit
from resources.journal.results import ResultRow
from resources.journal.verdicts import BudgetExhausted, Duplicate, Granted, RateLimited, Stopped, Verdict

__all__ = [
    "BudgetExhausted",
    "CallEnd",
    "Dispatch",
    "Duplicate",
    "Granted",
    "JournalWriter",
    "RateLimited",
    "ResultRow",
    "Stopped",
]


class Committer(Protocol):
    """Commits operations in groups, elsewhere."""

    def open(
        self,
        loop: asyncio.AbstractEventLoop,
        answered: Callable[[Sequence[Answer]], None],
        broken: Callable[[Exception], None],
    ) -> None:
        """Called once, before anything is sent; both are called in `loop`."""

    def send(self, operations: Sequence[Operation]) -> None:
        """`answered` gets an answer to each, in this order."""

    def close(self) -> None:
        """Return when all that was sent is committed."""


@dataclass(slots=True)
class _Asked:
    """One operation and the future that its asker waits on."""

    operation: Operation
    future: asyncio.Future[Any]
    withdrawn: bool = False
    """A dispatch whose asker was cancelled while it waited."""


class JournalWriter:
    """Journals the calls and results of one run from one event loop. Other processes may do so at the same time.

    `evidence_dir` takes the evidence segments. Commits in a thread, or by the `committer` given. Close it when all is
    written.
    """

    def __init__(
        self, journal: Journal, run_id: str, evidence_dir: Path, committer: Committer | None = None
    ) -> None:
        self._committer = committer or CommitThread(
            GroupCommit(journal, run_id, evidence_dir), f"journal-{run_id}"
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._asking: list[_Asked] = []
        self._sent: deque[_Asked] = deque()
        self._drained: asyncio.Future[None] | None = None
        self._broken: Exception | None = None
        self._closed = False

    async def dispatch(self, dispatch: Dispatch) -> Verdict:
        """Ask to send a request; send it only on `Granted`.

        If the waiting task is cancelled, a dispatch that is granted nevertheless is journaled as never sent.
        """
        asked = self._ask(dispatch)
        try:
            return await asked.future
        except asyncio.CancelledError:
            if asked.future.cancelled():
                asked.withdrawn = True
            elif asked.future.exception() is None:
                self._withdraw(dispatch, asked.future.result())
            raise

    async def finish(self, end: CallEnd, result: ResultRow | None = None) -> None:
        """Journal the end of a call and, where it ends its cell too, the cell's result, in one transaction.

        Once this returns neither can be lost. A cancelled wait does not undo it.
        """
        await self.finishing(end, result)

    def finishing(self, end: CallEnd | None, result: ResultRow | None = None) -> asyncio.Future[None]:
        """As `finish`, without waiting: what is asked for later is journaled later or in the same group. The
        future is done when both are durable; cancelling it undoes nothing."""
        return self._ask(finish(end, result)).future

    async def result(self, result: ResultRow) -> None:
        """Journal how a cell ended, where its last call has been finished before (or there was none)."""
        await self.finishing(None, result)

    async def drain(self) -> None:
        """Wait until all that was asked for has its answer, and dispatches that nobody waits for any more are journaled
        as never sent. Before the loop ends: later nobody could."""
        if self._asking or self._sent:
            self._drained = asyncio.get_running_loop().create_future()
            await self._drained

    def close(self) -> None:
        """Write all that was asked for, then stop. May be called twice."""
        if not self._closed:
            self._closed = True
            self._hand_over()
            self._committer.close()

    def _ask(self, operation: Operation) -> _Asked:
        if self._closed:
            raise RuntimeError("the journal's writer is closed")
        if self._broken is not None:
            raise self._broken
        loop = self._loop
        if loop is None:
            loop = self._loop = asyncio.get_running_loop()
            self._committer.open(loop, self._set_answers, self._break)
        asked = _Asked(operation, loop.create_future())
        self._asking.append(asked)
        if len(self._asking) == 1:
            # Once for all that this turn of the loop asks for: each waking of the committer costs.
            loop.call_soon(self._hand_over)
        return asked

    def _hand_over(self) -> None:
        if self._asking and self._broken is None:
            asking, self._asking = self._asking, []
            self._sent += asking
            self._committer.send([asked.operation for asked in asking])

    def _set_answers(self, answers: Sequence[Answer]) -> None:
        for answer in answers:
            asked = self._sent.popleft()
            if asked.future.done():
                if asked.withdrawn and isinstance(asked.operation, Dispatch):
                    self._withdraw(asked.operation, answer)
            elif isinstance(answer, Exception):
                asked.future.set_exception(answer)
            else:
                asked.future.set_result(answer)
        self._tell_drained()

    def _tell_drained(self) -> None:
        waiting = self._drained
        if waiting is not None and not waiting.done() and not self._asking and not self._sent:
            waiting.set_result(None)

    def _withdraw(self, dispatch: Dispatch, answer: Answer) -> None:
        if isinstance(answer, Granted):
            end = CallEnd(dispatch.call_id, dispatch.benchmark, "refused", spent_pico=0, failure="never_sent")
            # Closed or broken meanwhile: the call stays without an end, hence ambiguous.
            with contextlib.suppress(RuntimeError, SrBenchError):
                self._ask(finish(end, None))

    def _break(self, error: Exception) -> None:
        """There will be no more answers."""
        self._broken = error
        for asked in (*self._sent, *self._asking):
            if not asked.future.done():
                asked.future.set_exception(error)
        self._sent.clear()
        self._asking.clear()
        self._tell_drained()
