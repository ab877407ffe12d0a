"""Starting a run: its journal entry first, then a runner process that outlives the command."""

from __future__ import annotations

import os
import subprocess
import sys

from resources.journal.connection import Journal
from resources.journal.runs import Run, create_run
from resources.store import Store
from sr_bench_assets.plans.manifest import FrozenPlan


def launch(store: Store, journal: Journal, plan: FrozenPlan, idempotency_key: str | None) -> tuple[Run, bool]:
    """Create the run of `plan` (or find that of `idempotency_key`) and start its runner if none ever started.

    Returns the run and whether it is new. A queued run gets a runner even when it is not new: its creator may
    have died before starting one; of two runners the lease lets only one work.
    """
    started, created = create_run(
        journal,
        plan_sha256=plan.plan_sha256,
        name=plan.name,
        mode=plan.mode,
        profile=plan.profile,
        total_cells=plan.case_count * len(plan.targets),
        budget_usd=plan.limits.max_cost_usd,
        idempotency_key=idempotency_key,
    )
    if started.status == "queued":
        spawn_runner(store, started.id)
    return started, created


def spawn_runner(store: Store, run_id: str) -> int:
    """Start the runner of `run_id` in a session of its own, logging into the run's folder; returns its pid."""
    folder = store.run_dir(run_id)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    log = os.open(folder / "runner.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "cli.runner", run_id],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd=folder,
            env={**os.environ, "SR_BENCH_STORE": str(store.root)},
        )
    finally:
        os.close(log)
    return process.pid
