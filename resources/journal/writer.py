"""The journal's writer: one thread that commits what an event loop asks for in groups (group commit).

A dispatch is answered only after its record, its budget reservation and its rate are durable; an end only
after its evidence is on disk and its record committed. What arrives while one group commits forms the next.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from resources.errors import SrBenchError, Unavailable
from resources.journal.batch import Finish, Operation, apply_batch, apply_one
from resources.journal.calls import CallEnd, Dispatch
from resources.journal.connection import Journal
from resources.journal.evidence import FramePlace, SegmentWriter
from resources.journal.leases import HEARTBEAT_S, beat, reconcile_dead_runs
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

_MAX_BATCH = 256
_SWITCH_S = 0.0005
"""Interpreter lock's switch interval in a process that writes. At the default (5 ms) the writer waits up to that
long after each statement for a busy event loop to let go: measured 1,030 against 1,730 calls/s at 64 in flight."""
_RETRY_S = 60.0
"""How long an unreachable database is tried again before an operation fails."""


@dataclass(slots=True)
class _Asked:
    """One operation and the future that its asker waits on."""

    operation: Operation
    future: asyncio.Future[Any]
    answer: Verdict | None = None
    error: BaseException | None = None
    withdrawn: bool = False
    """A dispatch whose asker was cancelled while it waited."""


class JournalWriter:
    """Journals the calls and results of one run from one process. Other processes may do so at the same time.

    Used from one event loop. `evidence_dir` takes the evidence segments. Close it when all is written.
    """

    def __init__(self, journal: Journal, run_id: str, evidence_dir: Path) -> None:
        self._journal = journal
        self._run_id = run_id
        self._evidence_dir = evidence_dir
        self._segments: dict[str, SegmentWriter] = {}
        self._reserved: dict[str, int] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._queue: queue.SimpleQueue[list[_Asked] | None] = queue.SimpleQueue()
        self._asking: list[_Asked] = []
        self._closed = False
        self._blocked_by_others = False
        sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH_S))
        self._thread = threading.Thread(target=self._run, name=f"journal-{run_id}", daemon=True)
        self._thread.start()

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
            else:
                self._withdraw(asked)
            raise

    async def finish(self, end: CallEnd, result: ResultRow | None = None) -> None:
        """Journal the end of a call and, where it ends its cell too, the cell's result, in one transaction.

        Once this returns neither can be lost. A cancelled wait does not undo it.
        """
        await asyncio.shield(self.finishing(end, result))

    def finishing(self, end: CallEnd | None, result: ResultRow | None = None) -> asyncio.Future[None]:
        """As `finish`, without waiting: what is asked for later is journaled later or in the same group. The
        future is done when both are durable; cancelling it undoes nothing."""
        return self._ask(Finish(end, None, result)).future

    async def result(self, result: ResultRow) -> None:
        """Journal how a cell ended, where its last call has been finished before (or there was none)."""
        await asyncio.shield(self._ask(Finish(None, None, result)).future)

    def close(self) -> None:
        """Write all that was asked for, then stop. May be called twice."""
        if not self._closed:
            self._closed = True
            self._hand_over()
            self._queue.put(None)
        self._thread.join()

    def _ask(self, operation: Operation) -> _Asked:
        if self._closed:
            raise RuntimeError("the journal's writer is closed")
        loop = self._loop
        if loop is None:
            loop = self._loop = asyncio.get_running_loop()
        asked = _Asked(operation, loop.create_future())
        self._asking.append(asked)
        if len(self._asking) == 1:
            # Once for all that this turn of the loop asks for: each waking of the thread costs a change of the lock.
            loop.call_soon(self._hand_over)
        return asked

    def _hand_over(self) -> None:
        if self._asking:
            asking, self._asking = self._asking, []
            self._queue.put(asking)

    def _withdraw(self, asked: _Asked) -> None:
        dispatch = asked.operation
        if not isinstance(dispatch, Dispatch) or not isinstance(asked.answer, Granted):
            return
        end = CallEnd(dispatch.call_id, dispatch.benchmark, "refused", spent_pico=0, failure="never_sent")
        with contextlib.suppress(
            RuntimeError
        ):  # closed meanwhile: the call stays without an end, hence ambiguous
            self._ask(Finish(end, None, None))

    def _run(self) -> None:
        next_beat = time.monotonic() + HEARTBEAT_S
        open_ = True
        while open_:
            batch: list[_Asked] = []
            with contextlib.suppress(queue.Empty):
                asking = self._queue.get(timeout=max(next_beat - time.monotonic(), 0.001))
                while True:
                    if asking is None:
                        open_ = False
                    else:
                        batch += asking
                    if len(batch) >= _MAX_BATCH:
                        break
                    asking = self._queue.get_nowait()
            if batch:
                self._commit(batch)
                self._answer(batch)
            if time.monotonic() >= next_beat:
                self._beat()
                next_beat = time.monotonic() + HEARTBEAT_S
        for segment in self._segments.values():
            segment.close()

    def _beat(self) -> None:
        # A missed heartbeat is no reason to stop: the next operation tells if the database is really away.
        with contextlib.suppress(SrBenchError, SQLAlchemyError):
            beat(self._journal, self._run_id)
            if self._blocked_by_others:
                # The places that are taken may be those of a runner that died.
                self._blocked_by_others = False
                reconcile_dead_runs(self._journal)

    def _commit(self, batch: list[_Asked]) -> None:
        self._keep_evidence(batch)
        ready = [asked for asked in batch if asked.error is None]
        if not ready:
            return
        try:
            with self._journal.begin() as connection:
                operations = [asked.operation for asked in ready]
                answers = apply_batch(connection, self._run_id, operations, self._reserved)
            for asked, answer in zip(ready, answers, strict=True):
                asked.answer = answer
        except Exception:
            # Something unusual, an outage, or one operation that cannot be written: whose fault it is shows when
            # each is applied alone.
            for asked in ready:
                self._commit_one(asked)
        self._remember(ready)

    def _commit_one(self, asked: _Asked) -> None:
        give_up = time.monotonic() + _RETRY_S
        pause = 0.05
        while True:
            try:
                with self._journal.begin() as connection:
                    asked.answer = apply_one(connection, self._run_id, asked.operation)
                return
            except Unavailable as error:
                asked.error = error
                if error.code == "disk_full" or time.monotonic() > give_up:
                    return
            except Exception as error:
                asked.error = error
                return
            time.sleep(pause)
            pause = min(pause * 2, 2.0)
            asked.error = None

    def _remember(self, done: Sequence[_Asked]) -> None:
        for asked in done:
            operation = asked.operation
            if isinstance(operation, Dispatch):
                if isinstance(asked.answer, Granted):
                    self._reserved[operation.call_id] = operation.reserved_pico
                elif isinstance(asked.answer, RateLimited) and asked.answer.cause == "concurrency":
                    self._blocked_by_others = True
            elif operation.end is not None and asked.error is None:
                self._reserved.pop(operation.end.call_id, None)

    def _keep_evidence(self, batch: Sequence[_Asked]) -> None:
        by_benchmark: dict[str, list[tuple[_Asked, CallEnd, ResultRow | None]]] = {}
        for asked in batch:
            operation = asked.operation
            if isinstance(operation, Finish) and operation.end is not None and operation.end.evidence:
                group = by_benchmark.setdefault(operation.end.benchmark, [])
                group.append((asked, operation.end, operation.result))
        for benchmark, group in by_benchmark.items():
            segment = self._segments.get(benchmark)
            if segment is None:
                segment = self._segments[benchmark] = SegmentWriter(self._evidence_dir, benchmark)
            try:
                places: list[FramePlace] = segment.append([end.evidence for _, end, _ in group])
            except (SrBenchError, OSError) as error:
                for asked, _, _ in group:
                    asked.error = error
                continue
            for (asked, end, result), place in zip(group, places, strict=True):
                asked.operation = Finish(end, place, result)

    def _answer(self, batch: Sequence[_Asked]) -> None:
        """Wake the askers, all at once."""
        assert self._loop is not None  # somebody asked
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._set_answers, batch)

    def _set_answers(self, batch: Sequence[_Asked]) -> None:
        for asked in batch:
            if asked.future.done():
                if asked.withdrawn:
                    self._withdraw(asked)
            elif asked.error is not None:
                asked.future.set_exception(asked.error)
            else:
                asked.future.set_result(asked.answer)
