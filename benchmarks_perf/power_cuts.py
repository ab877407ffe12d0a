"""Power cuts: the runner is killed and everything that it wrote and had not synced is thrown away (`unsynced.py`).

One lineage after the other on a store of its own, which no other process holds open at the cut. After each cut the
store must still tell of every request that the server received (write-ahead), hold the evidence of every result
that it tells of, and be able to go on.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks_perf.crash_audit import Audit, Lineage, audit, completed_now
from benchmarks_perf.crash_plans import PlanMaker
from benchmarks_perf.crash_runners import RunnerForge, alive, kill
from benchmarks_perf.unsynced import died_at_sync, inventory, lose_unsynced
from cli.launch import create
from resources.journal.calls import list_calls
from resources.journal.connection import Journal, open_journal
from resources.journal.leases import reconcile_dead_runs
from resources.journal.runs import get_run
from resources.store import Store
from sr_bench_assets.datasets.artifact import read_cases
from sr_bench_assets.plans.plan_store import dataset_file
from sr_bench_assets.results.recovery import recover, recovery_plan
from sr_bench_assets.usage.rebuild import rebuild_run
from tests.servers.lab import RunningLab

_FIRST_PLAN = 1_000_000
CUT = "power cut: runner killed, unsynced writes lost"
CUT_AT_SYNC = "power cut as the runner was about to sync a file"


@dataclass
class PowerCuts:
    """What was cut and what was found."""

    kills: Counter[str]
    audit: Audit
    bytes_lost: int = 0
    wal_bytes_lost: int = 0


def cut_power(
    folder: Path, lab: RunningLab, judge: Mapping[str, Any], forge: RunnerForge, cuts: int, seed: int
) -> PowerCuts:
    """Make `cuts` power cuts and audit the store after them."""
    store = Store.open(folder / "cut-store")
    plans = PlanMaker(store, folder, lab.targets, judge)
    before = len(lab.requests())
    done = PowerCuts(Counter(), Audit())
    lineages: list[Lineage] = []
    problems: list[str] = []
    number = _FIRST_PLAN
    while done.kills.total() < cuts:
        number += 1
        draw = random.Random(f"{seed}/{number}")
        _, plan = plans.plan(number, draw)
        journal = open_journal(store)
        cases = read_cases(dataset_file(store, plan), plan.dataset.sha256)
        lineage = Lineage([(case.id, target.id) for case in cases for target in plan.targets])
        lineages.append(lineage)
        run, _ = create(journal, plan, None)
        while True:
            if run.id not in lineage.runs:
                lineage.runs.append(run.id)
            journal.close()
            cut = _run_and_cut(store, folder, run.id, forge, draw, done, done.kills.total() < cuts)
            journal = open_journal(store)
            if cut is not None:
                done.kills[cut] += 1
                problems += _after_cut(store, journal, run.id, lab.requests()[before:], lineages)
                lineage.seen.update(completed_now(journal, run.id))
            reconcile_dead_runs(journal)
            if get_run(journal, run.id).status == "queued":
                continue
            recovery = recovery_plan(store, journal, run.id, "undispatched")
            if not recovery.eligible:
                break
            run, _ = recover(store, journal, run.id, recovery, env={})
        journal.close()
    journal = open_journal(store)
    done.audit = audit(store, journal, lineages, lab.requests()[before:])
    done.audit.problems += problems
    journal.close()
    print(
        f"power cuts threw away {done.wal_bytes_lost} bytes of the journal's log and {done.bytes_lost} bytes "
        "of other files"
    )
    return done


def _run_and_cut(
    store: Store,
    folder: Path,
    run_id: str,
    forge: RunnerForge,
    draw: random.Random,
    done: PowerCuts,
    cut: bool,
) -> str | None:
    """Run `run_id`; with `cut`, until a drawn instant. How it was cut, None if it was not."""
    synced = folder / f"{run_id}.synced"
    synced.unlink(missing_ok=True)
    state = inventory(store.root)
    die_at = draw.randint(1, 40) if cut and draw.random() < 0.5 else None
    started = time.monotonic()
    pid = forge.start(store.root, run_id, apart=draw.random() < 0.7, synced=synced, die_at=die_at)
    until = started + (draw.uniform(0.1, 3.5) if cut and die_at is None else 90)
    while alive(pid) and time.monotonic() < until:
        time.sleep(0.003)
    if kill(pid):
        how = CUT
    elif died_at_sync(synced):
        how = CUT_AT_SYNC
    else:
        return None
    lost = lose_unsynced(store.root, state, synced)
    done.bytes_lost += lost.bytes
    done.wal_bytes_lost += lost.wal_bytes
    return how


def _after_cut(
    store: Store,
    journal: Journal,
    run_id: str,
    requests: list[dict[str, Any]],
    lineages: list[Lineage],
) -> list[str]:
    """What a store that lost power must still know."""
    known = {
        row.request_sha256
        for lineage in lineages
        for known_run in lineage.runs
        for row in list_calls(journal, known_run)
    }
    forgotten = sorted({record["digest"] for record in requests} - known)
    problems = [f"{run_id}: no dispatch record of {digest} after a power cut" for digest in forgotten]
    rebuilt = rebuild_run(store, journal, run_id)
    if rebuilt["different"]:
        problems.append(f"{run_id}: evidence lost by a power cut: {rebuilt['different'][:3]}")
    return problems
