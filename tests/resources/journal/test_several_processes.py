"""What several processes on one journal may not do together that none may do alone, and what a kill may not lose."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from resources.canonical import sha256_bytes
from resources.journal.calls import list_calls
from resources.journal.connection import Journal
from resources.journal.evidence import FramePlace, read_frame
from resources.journal.leases import reconcile_dead_runs
from resources.journal.progress import progress
from resources.journal.results import list_results
from resources.journal.runs import Run, get_run
from resources.store import Store

from .conftest import NewRun
from .working_process import evidence_of

ROOT = Path(__file__).parents[3]
WORKER = Path(__file__).with_name("working_process.py")
ROUNDS = int(os.environ.get("SR_BENCH_CRASH_ROUNDS", "4"))


def start(store: Store, run: Run, benchmark: str, log: Path, **options: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, WORKER, store.root, run.id, benchmark, log, json.dumps(options)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def said(log: Path, word: str) -> list[list[str]]:
    lines = (line.split() for line in log.read_text().splitlines()) if log.exists() else ()
    return [line[1:] for line in lines if line[0] == word]


def wait_for(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    assert [process.wait(90) for process in processes] == [0] * len(processes)


def pico(run: Run) -> tuple[int, int, int]:
    amounts = (run.reserved_usd, run.spent_usd, run.unknown_usd)
    reserved, spent, unknown = (int(amount.scaleb(12)) for amount in amounts)
    return reserved, spent, unknown


def test_a_shared_budget_is_spent_to_the_last_and_never_beyond(
    store: Store, journal: Journal, new_run: NewRun, tmp_path: Path
) -> None:
    run = new_run(budget_usd="0.000000010050", total_cells=300, partitions=())
    log = tmp_path / "log"
    wait_for([start(store, run, f"b{number}", log, think_s=0.002, apart=number != 1) for number in range(3)])
    assert len(said(log, "sent")) == 100  # of 300: 10,050 pico-dollars at 100 each
    assert len(said(log, "BudgetExhausted")) > 0
    assert pico(get_run(journal, run.id)) == (0, 10_000, 0)
    calls = list_calls(journal, run.id)
    assert [call.seq for call in calls] == list(range(1, 101))
    assert len(list_results(journal, run.id)) == 100


def test_a_shared_rate_holds_in_every_window(
    store: Store, journal: Journal, new_run: NewRun, tmp_path: Path
) -> None:
    # Two runs, for the ceiling is the target's, not the run's.
    first, second = new_run(partitions=()), new_run(partitions=())
    log = tmp_path / "log"
    options: dict[str, Any] = {
        "rate": {"key": "endpoint", "requests_per_minute": 40},
        "window_s": 1.0,
        "margin_s": 0.05,
        "cells": 40,
    }
    processes = [
        start(store, first, "b0", log, **options),
        start(store, first, "b1", log, **options),
        start(store, second, "b0", log, **options),
    ]
    wait_for(processes)
    times = sorted(call.dispatched_at for run in (first, second) for call in list_calls(journal, run.id))
    assert len(times) == 120
    assert all(later - earlier > 1.0 for earlier, later in zip(times, times[40:], strict=False))


def test_a_shared_bound_on_calls_in_flight_holds(
    store: Store, journal: Journal, new_run: NewRun, tmp_path: Path
) -> None:
    run = new_run(partitions=(), total_cells=60)
    log = tmp_path / "log"
    options: dict[str, Any] = {"rate": {"key": "endpoint", "max_in_flight": 5}, "cells": 30, "think_s": 0.01}
    wait_for([start(store, run, f"b{number}", log, **options) for number in range(2)])
    calls = list_calls(journal, run.id)
    assert len(calls) == 60
    changes = sorted(
        [(call.dispatched_at, 1) for call in calls] + [(call.finished_at or 0.0, -1) for call in calls]
    )
    in_flight = [sum(change for _, change in changes[: n + 1]) for n in range(len(changes))]
    assert max(in_flight) <= 5


@pytest.mark.parametrize("round_", range(ROUNDS))
@pytest.mark.parametrize("apart", [False, True], ids=["thread", "process"])
def test_a_killed_writer_loses_nothing_that_it_was_told_is_safe(
    store: Store, journal: Journal, new_run: NewRun, tmp_path: Path, round_: int, apart: bool
) -> None:
    run = new_run(partitions=(), total_cells=5000)
    log = tmp_path / "log"
    concurrency = random.choice([1, 8, 64])
    process = start(store, run, "b0", log, cells=5000, concurrency=concurrency, think_s=0.003, apart=apart)
    deadline = time.monotonic() + 30
    while not said(log, "sent") and time.monotonic() < deadline:
        time.sleep(0.002)
    time.sleep(random.uniform(0, 0.5))
    committing = psutil.Process(process.pid).children()
    process.kill()
    process.wait()
    if apart and random.random() < 0.5:
        committing[0].kill()
    psutil.wait_procs(committing, timeout=20)
    sent, ended = said(log, "sent"), said(log, "ended")
    calls = {call.id: call for call in list_calls(journal, run.id)}
    for case_id, call_id, _ in sent:
        assert calls[call_id].case_id == case_id
    for case_id, call_id in ended:
        call = calls[call_id]
        assert call.outcome == "completed"
        place = FramePlace(call.evidence_segment or "", call.evidence_offset or 0, call.evidence_length or 0)
        frame = read_frame(store.evidence_dir(run.id), place)
        assert frame == evidence_of(case_id)
        assert sha256_bytes(frame) == call.evidence_sha256
    (dead,) = reconcile_dead_runs(journal)
    results = {result.case_id: result.status for result in list_results(journal, run.id)}
    assert {case_id for case_id, _ in ended} <= {
        case for case, status in results.items() if status == "completed"
    }
    open_cells = {call.case_id for call in calls.values() if call.outcome is None}
    assert {case for case, status in results.items() if status == "ambiguous"} == open_cells
    found = progress(journal, run.id)
    assert (found.ambiguous, found.running, found.failed) == (len(open_cells), 0, 0)
    assert found.completed + found.ambiguous + found.undispatched == 5000
    assert dead.ambiguous == len(open_cells)
    assert pico(get_run(journal, run.id)) == (0, 100 * found.completed, 100 * found.ambiguous)
