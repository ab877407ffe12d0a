"""A process that works through cells with a journal writer, for tests that run several or kill one.

Usage: python working_process.py STORE RUN BENCHMARK LOG OPTIONS(JSON). It writes a line to LOG (one write call,
which survives its death) when it would send a request, and another when an end was acknowledged.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import time
from typing import Any

from resources.canonical import sha256_bytes
from resources.journal import rates
from resources.journal.calls import CallEnd, Dispatch, RateCeiling
from resources.journal.commit_process import CommitProcess
from resources.journal.connection import open_journal
from resources.journal.leases import acquire_lease, release_lease
from resources.journal.results import ResultRow
from resources.journal.verdicts import Granted, RateLimited
from resources.journal.writer import JournalWriter
from resources.store import Store

DEFAULTS: dict[str, Any] = {
    "cells": 100,
    "concurrency": 16,
    "reserved": 100,
    "spent": 100,
    "think_s": 0.0,
    "window_s": 60.0,
    "margin_s": 1.0,
    "rate": None,
    "apart": False,
}


def evidence_of(case_id: str) -> bytes:
    """Bytes that a test can make again to compare: 1 to 3,000 of them."""
    return random.Random(case_id).randbytes(1 + random.Random(case_id).randrange(3000))


class Worker:
    """The cells of one benchmark, worked through by one process."""

    def __init__(
        self,
        store: Store,
        run_id: str,
        benchmark: str,
        log: str,
        options: dict[str, Any],
        commits: CommitProcess | None,
    ) -> None:
        self.options = options
        self.benchmark = benchmark
        self.log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.journal = open_journal(store)
        self.lease = acquire_lease(self.journal, run_id, benchmark)
        if commits is not None:
            commits.serve(store, run_id)
        self.writer = JournalWriter(self.journal, run_id, store.evidence_dir(run_id), commits)
        self.rate = RateCeiling(**options["rate"]) if options["rate"] else None

    def say(self, *words: object) -> None:
        os.write(self.log, (" ".join(map(str, words)) + "\n").encode())

    async def run(self) -> None:
        cases = iter(range(self.options["cells"]))
        await asyncio.gather(*(self.lane(cases) for _ in range(self.options["concurrency"])))
        self.writer.close()
        release_lease(self.journal, self.lease)  # or a process that starts later would take this one for dead

    async def lane(self, cases: Any) -> None:
        for number in cases:
            if not await self.cell(f"{self.benchmark}/{number}"):
                return

    async def cell(self, case_id: str) -> bool:
        dispatch = Dispatch(
            benchmark=self.benchmark,
            case_id=case_id,
            target_id="t",
            role="subject",
            step=0,
            attempt=0,
            request_sha256="b" * 64,
            reserved_pico=self.options["reserved"],
            reserved_tokens=10,
            rate=self.rate,
        )
        verdict = await self.writer.dispatch(dispatch)
        while isinstance(verdict, RateLimited):
            await asyncio.sleep(max(verdict.until - time.time(), 0.001))
            verdict = await self.writer.dispatch(dispatch)
        if not isinstance(verdict, Granted):
            self.say(type(verdict).__name__, case_id)
            return False
        self.say("sent", case_id, dispatch.call_id, verdict.dispatched_at)
        await asyncio.sleep(self.options["think_s"])
        evidence = evidence_of(case_id)
        end = CallEnd(
            call_id=dispatch.call_id,
            benchmark=self.benchmark,
            outcome="completed",
            spent_pico=self.options["spent"],
            record={"text": case_id},
            evidence=evidence,
            evidence_sha256=sha256_bytes(evidence),
        )
        result = ResultRow(case_id, "t", self.benchmark, "completed", answer=case_id, call_count=1)
        await self.writer.finish(end, result)
        self.say("ended", case_id, dispatch.call_id)
        return True


def main() -> None:
    root, run_id, benchmark, log, text = sys.argv[1:]
    options = {**DEFAULTS, **json.loads(text)}
    rates.WINDOW_S, rates.MARGIN_S = options["window_s"], options["margin_s"]
    commits = CommitProcess.forked() if options["apart"] else None
    asyncio.run(Worker(Store.open(root), run_id, benchmark, log, options, commits).run())


if __name__ == "__main__":
    main()
