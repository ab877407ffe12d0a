"""Starting a run: its journal entry first, then a runner process that outlives the command."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from resources.store import Store

if TYPE_CHECKING:
    from resources.journal.connection import Journal
    from resources.journal.runs import Run
    from sr_bench_assets.plans.manifest import FrozenPlan


@dataclass
class WarmRunner:
    """A runner process that imports what it needs while the command still verifies the plan."""

    store: Store
    process: subprocess.Popen[bytes]

    def hand_over(self, run_id: str) -> None:
        """Tell the runner which run is its own; it works on, whatever becomes of this process."""
        assert self.process.stdin is not None  # started with a pipe
        try:
            self.process.stdin.write(f"{run_id}\n".encode())
            self.process.stdin.close()
        except BrokenPipeError:
            # It died while it waited; the run is journaled and needs another one.
            self.process = spawn_runner(self.store, run_id)

    def dismiss(self) -> None:
        """No run came of it: the runner ends when its input does."""
        if self.process.stdin is not None and not self.process.stdin.closed:
            self.process.stdin.close()


@contextmanager
def warm_runner(store: Store) -> Iterator[WarmRunner]:
    """A runner waiting for its run; dismissed if it was handed none."""
    runner = WarmRunner(store, _start(store, "-", store.root / "runner.log"))
    try:
        yield runner
    finally:
        runner.dismiss()


def create(journal: Journal, plan: FrozenPlan, idempotency_key: str | None) -> tuple[Run, bool]:
    """The run of `plan` (or that of `idempotency_key`) and whether it is new.

    A queued run needs a runner even when it is not new: its creator may have died before starting one; of two
    runners the lease lets only one work.
    """
    from resources.journal.runs import create_run

    return create_run(
        journal,
        plan_sha256=plan.plan_sha256,
        name=plan.name,
        mode=plan.mode,
        profile=plan.profile,
        total_cells=plan.case_count * len(plan.targets),
        budget_usd=plan.limits.max_cost_usd,
        idempotency_key=idempotency_key,
    )


def spawn_runner(store: Store, run_id: str) -> subprocess.Popen[bytes]:
    """Start the runner of `run_id` in a session of its own, logging into the run's folder."""
    return _start(store, run_id, store.run_dir(run_id) / "runner.log")


def _start(store: Store, argument: str, log_path: Path) -> subprocess.Popen[bytes]:
    log = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        return subprocess.Popen(
            [sys.executable, "-m", "cli.runner", argument],
            stdin=subprocess.PIPE if argument == "-" else subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd=store.root,
            env={**os.environ, "SR_BENCH_STORE": str(store.root)},
        )
    finally:
        os.close(log)
