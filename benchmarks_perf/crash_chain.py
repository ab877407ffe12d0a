"""One lineage through the campaign: start a run, kill its runner, start again, continue in a child, until all
cells have ended."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import Table, func, select

from benchmarks_perf.crash_audit import Lineage, completed_now
from benchmarks_perf.crash_runners import RunnerForge, alive, kill
from cli.launch import create
from resources.journal.connection import Journal
from resources.journal.leases import live_runner, reconcile_dead_runs
from resources.journal.runs import get_run, list_runs
from resources.journal.schema import calls, results, run_leases
from resources.store import Store
from sr_bench_assets.datasets.artifact import read_cases
from sr_bench_assets.plans.manifest import FrozenPlan
from sr_bench_assets.plans.plan_store import dataset_file
from sr_bench_assets.results.recovery import recover, recovery_plan
from tests.cli.evaluation import Bench

KILLS_PER_LINEAGE = 8
GENERATIONS = 30
DISCONNECTED = "database connections ended under the runner"


@dataclass
class Campaign:
    """What all lineages share."""

    store: Store
    journal: Journal
    bench: Bench
    forge: RunnerForge
    target: int
    disconnect: Callable[[int], int] | None = None
    """Ends the database connections of a process; how many."""
    kills: Counter[str] = field(default_factory=Counter[str])
    lineages: list[Lineage] = field(default_factory=list[Lineage])
    problems: list[str] = field(default_factory=list[str])
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held from a kill to the look at what it left, so that nobody reconciles in between."""

    @property
    def enough(self) -> bool:
        return sum(self.kills.values()) >= self.target


class Chain:
    """One plan from its first run to the last of its children."""

    def __init__(self, campaign: Campaign, path: Path, plan: FrozenPlan, draw: random.Random) -> None:
        self._campaign = campaign
        self._path = path
        self._plan = plan
        self._draw = draw
        cases = read_cases(dataset_file(campaign.store, plan), plan.dataset.sha256)
        self._again: Callable[[], str] = lambda: ""
        """Repeats the submission of the current run; the id it gives."""
        self.lineage = Lineage([(case.id, target.id) for case in cases for target in plan.targets])

    def live(self) -> None:
        """Run, kill and recover until nothing of the plan is left to send."""
        key = f"{self._plan.name}-{self._draw.random():.12f}"
        run_id, pid = self._submit(key)
        killed = 0
        self._again = lambda: create(self._campaign.journal, self._plan, key)[0].id
        for generation in range(GENERATIONS):
            self.lineage.runs.append(run_id)
            while True:
                if killed < KILLS_PER_LINEAGE and not self._campaign.enough:
                    killed += self._kill_sometime(run_id, pid)
                self._wait(pid)
                self._reconcile()
                if get_run(self._campaign.journal, run_id).status != "queued":
                    break
                # Nobody had taken it: the repeated submission starts another runner for the same run.
                if (again := self._again()) != run_id:
                    self._campaign.problems.append(f"the repeated submission of {run_id} made {again}")
                pid = self._campaign.forge.start(self._campaign.store.root, run_id, apart=self._apart())
            follow = self._continue(run_id, f"{key}/{generation}")
            if follow is None:
                return
            run_id, pid = follow
        self._campaign.problems.append(f"{self.lineage.runs[0]} did not come to rest: {self.lineage.runs}")

    # starting

    def _submit(self, key: str) -> tuple[str, int]:
        campaign = self._campaign
        if self._draw.random() < 0.12 and not campaign.enough:
            arguments = ["run", "--manifest", str(self._path), "--idempotency-key", key, "--detach"]
            self._kill_command(arguments, "`sr-bench run` itself")
            run_id = campaign.bench.ok(*arguments)["run_id"]
            return run_id, self._runner_of(run_id)
        run, _ = create(campaign.journal, self._plan, key)
        return run.id, campaign.forge.start(campaign.store.root, run.id, apart=self._apart())

    def _continue(self, run_id: str, key: str) -> tuple[str, int] | None:
        """A child for what is left; None if nothing is."""
        campaign = self._campaign
        recovery = recovery_plan(campaign.store, campaign.journal, run_id, "undispatched")
        if not recovery.eligible:
            return None
        self._again = lambda: (
            recover(campaign.store, campaign.journal, run_id, recovery, idempotency_key=key, env={})[0].id
        )
        if self._draw.random() < 0.08 and not campaign.enough:
            file = campaign.bench.folder / f"{run_id}.recovery.json"
            file.write_text(recovery.model_dump_json(), encoding="utf-8")
            arguments = ["recover", run_id, "--plan", str(file), "--idempotency-key", key, "--detach"]
            self._kill_command(arguments, "`sr-bench recover` itself")
            child_id = campaign.bench.ok(*arguments)["run_id"]
            children = list_runs(campaign.journal, parent_run_id=run_id)
            if [child.id for child in children] != [child_id]:
                campaign.problems.append(f"{run_id} has the children {children}")
            return child_id, self._runner_of(child_id)
        child_id = self._again()
        return child_id, campaign.forge.start(campaign.store.root, child_id, apart=self._apart())

    def _runner_of(self, run_id: str) -> int:
        """Pid of the runner that a command started, once it has its lease (0: it ended before we looked)."""
        until = time.monotonic() + 30
        while time.monotonic() < until:
            runner = live_runner(self._campaign.journal, run_id)
            if runner is not None:
                return runner.pid
            if get_run(self._campaign.journal, run_id).is_terminal:
                break
            time.sleep(0.02)
        return 0

    def _apart(self) -> bool:
        return self._draw.random() < 0.7

    # killing

    def _kill_command(self, arguments: list[str], name: str) -> None:
        """Start a command and kill it at a random instant of its life; the runner it may have started lives."""
        bench = self._campaign.bench
        command = subprocess.Popen(
            [sys.executable, "-m", "cli.main", *arguments],
            env=bench.environment(),
            cwd=bench.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(self._draw.uniform(0.05, 1.5))
        if command.poll() is None:
            command.kill()
            self._campaign.kills[name] += 1
        command.wait()

    def _kill_sometime(self, run_id: str, pid: int) -> bool:
        campaign = self._campaign
        if pid == 0:
            return False
        if campaign.disconnect is not None and self._draw.random() < 0.3:
            time.sleep(self._draw.uniform(0, 2))
            if campaign.disconnect(pid):
                campaign.kills[DISCONNECTED] += 1
                return True
            return False
        self._wait_for_instant(run_id, pid)
        with campaign.lock:
            if not kill(pid, alone=self._draw.random() < 0.5):
                return False
            campaign.kills[self._stage(run_id)] += 1
            self.lineage.seen.update(completed_now(campaign.journal, run_id))
        return True

    def _wait_for_instant(self, run_id: str, pid: int) -> None:
        """Wait for a drawn stage, then for a drawn while."""
        draw = self._draw
        stage = draw.choice(["start", "any", "begun", "dispatch", "dispatch", "end"])
        total = get_run(self._campaign.journal, run_id).total_cells
        if stage == "begun":
            self._until(pid, lambda: self._count(run_leases, run_id) > 0)
        elif stage == "dispatch":
            wanted = draw.randint(1, total)
            self._until(pid, lambda: self._count(calls, run_id) >= wanted)
        elif stage == "end":
            self._until(pid, lambda: self._count(results, run_id) >= total)
        time.sleep(draw.uniform(0, {"start": 0.2, "any": 2.0, "end": 0.6}.get(stage, 0.15)))

    def _until(self, pid: int, condition: Callable[[], bool]) -> None:
        while alive(pid) and not condition():
            time.sleep(0.01)

    def _count(self, table: Table, run_id: str) -> int:
        query = select(func.count()).where(table.c.run_id == run_id)
        with self._campaign.journal.connect() as connection:
            return int(connection.execute(query).scalar_one())

    def _stage(self, run_id: str) -> str:
        """What the runner was doing when it died, by what it left in the journal."""
        run = get_run(self._campaign.journal, run_id)
        if run.is_terminal:
            return "runner, run ended (scorecard in Dagster)"
        if not self._count(run_leases, run_id):
            return "runner, before its lease"
        sent, ended = self._count(calls, run_id), self._count(results, run_id)
        if not sent:
            return "runner, with its lease, nothing sent"
        if ended >= run.total_cells:
            return "runner, all cells ended (sealing, Dagster steps)"
        query = select(func.count()).where(calls.c.run_id == run_id, calls.c.outcome.is_(None))
        with self._campaign.journal.connect() as connection:
            if connection.execute(query).scalar_one():
                return "runner, calls in flight"
        return "runner, between calls"

    # the next start

    def _wait(self, pid: int) -> None:
        until = time.monotonic() + 90
        while pid and alive(pid):
            if time.monotonic() > until:
                self._campaign.problems.append(f"runner {pid} of {self.lineage.runs[-1]} does not end")
                kill(pid)
            time.sleep(0.01)

    def _reconcile(self) -> None:
        with self._campaign.lock:
            reconcile_dead_runs(self._campaign.journal)
        repeated = reconcile_dead_runs(self._campaign.journal)
        if any(dead.run_id in self.lineage.runs for dead in repeated):
            self._campaign.problems.append(f"reconciled twice: {repeated}")
