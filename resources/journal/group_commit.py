"""Committing what the calls of one run ask for, many operations in one transaction (group commit).

A dispatch is answered only after its record, its budget reservation and its rate are durable; an end only
after its evidence is on disk and its record committed.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

from resources.errors import SrBenchError, Unavailable
from resources.journal.batch import EndOfCall, Finish, Operation, apply_batch, apply_one
from resources.journal.calls import Dispatch
from resources.journal.connection import Journal
from resources.journal.evidence import FramePlace, SegmentWriter
from resources.journal.leases import HEARTBEAT_S, beat, reconcile_dead_runs
from resources.journal.verdicts import Granted, RateLimited, Verdict

_RETRY_S = 60.0
"""How long an unreachable database, or a full disk, is tried again before operations fail."""

Answer = Verdict | Exception | None
"""A dispatch's verdict, None for what else is done, or why an operation failed."""


@dataclass(slots=True)
class _Work:
    operation: Operation
    answer: Verdict | None = None
    error: Exception | None = None


class GroupCommit:
    """Commits for one run. Used by one thread; other processes may commit for the same run at the same time.

    `evidence_dir` takes the evidence segments. Close it when all is written.
    """

    def __init__(self, journal: Journal, run_id: str, evidence_dir: Path) -> None:
        self._journal = journal
        self._run_id = run_id
        self._evidence_dir = evidence_dir
        self._segments: dict[str, SegmentWriter] = {}
        self._reserved: dict[str, int] = {}
        self._blocked_by_others = False
        self._next_beat = time.monotonic() + HEARTBEAT_S

    def commit(self, operations: Sequence[Operation]) -> list[Answer]:
        """Make `operations` durable; the answer to each. One that fails leaves the others alone."""
        batch = [_Work(operation) for operation in operations]
        give_up = time.monotonic() + _RETRY_S
        self._keep_evidence(batch, give_up)
        ready = [work for work in batch if work.error is None]
        if ready:
            try:
                with self._journal.begin() as connection:
                    group = [work.operation for work in ready]
                    answers = apply_batch(connection, self._run_id, group, self._reserved)
                for work, answer in zip(ready, answers, strict=True):
                    work.answer = answer
            except Exception:
                # Something unusual, an outage, or one operation that cannot be written: whose fault it is shows
                # when each is applied alone.
                for work in ready:
                    self._commit_one(work, give_up)
            self._remember(ready)
        return [work.error or work.answer for work in batch]

    def beat_if_due(self) -> float:
        """Keep the run's lease alive if it is time to; seconds until it is time again."""
        now = time.monotonic()
        if now >= self._next_beat:
            self._beat()
            self._next_beat = time.monotonic() + HEARTBEAT_S
            return HEARTBEAT_S
        return self._next_beat - now

    def close(self) -> None:
        """Close the evidence segments."""
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

    def _commit_one(self, work: _Work, give_up: float) -> None:
        pause = 0.05
        while True:
            try:
                with self._journal.begin() as connection:
                    work.answer = apply_one(connection, self._run_id, work.operation)
                return
            except Unavailable as error:
                work.error = error
                # Without space nothing new is begun, but what has come back waits for it.
                unsent = error.code == "disk_full" and isinstance(work.operation, Dispatch)
                if unsent or error.code == "journal_damaged" or time.monotonic() > give_up:
                    return
            except Exception as error:
                work.error = error
                return
            time.sleep(pause)
            pause = min(pause * 2, 2.0)
            work.error = None

    def _remember(self, done: Sequence[_Work]) -> None:
        for work in done:
            operation = work.operation
            if isinstance(operation, Dispatch):
                if isinstance(work.answer, Granted):
                    self._reserved[operation.call_id] = operation.reserved_pico
                elif isinstance(work.answer, RateLimited) and work.answer.cause == "concurrency":
                    self._blocked_by_others = True
            elif operation.end is not None and work.error is None:
                self._reserved.pop(operation.end.call_id, None)

    def _keep_evidence(self, batch: Sequence[_Work], give_up: float) -> None:
        by_benchmark: dict[str, list[tuple[_Work, Finish, EndOfCall]]] = {}
        for work in batch:
            operation = work.operation
            if isinstance(operation, Finish) and operation.end is not None and operation.end.evidence:
                group = by_benchmark.setdefault(operation.end.benchmark, [])
                group.append((work, operation, operation.end))
        for benchmark, group in by_benchmark.items():
            segment = self._segments.get(benchmark)
            if segment is None:
                segment = self._segments[benchmark] = SegmentWriter(self._evidence_dir, benchmark)
            try:
                places = _append(segment, [end.evidence for _, _, end in group], give_up)
            except (SrBenchError, OSError) as error:
                for work, _, _ in group:
                    work.error = error
                continue
            for (work, finish, _), place in zip(group, places, strict=True):
                work.operation = finish._replace(place=place)


def _append(segment: SegmentWriter, frames: Sequence[bytes], give_up: float) -> list[FramePlace]:
    while True:
        try:
            return segment.append(frames)
        except Unavailable as error:
            if error.code != "disk_full" or time.monotonic() > give_up:
                raise
        time.sleep(0.5)
