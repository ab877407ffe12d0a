"""kill -9 at several instants, lost acknowledgements and repeated submissions: nothing is sent twice, nothing lost.

Real commands and real runner processes; a campaign of hundreds of kills is `benchmarks_perf/crash_campaign.py`.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from resources.journal.connection import Journal, open_journal
from resources.journal.leases import live_runner
from resources.journal.results import list_results
from resources.journal.runs import find_run_by_key, get_run, list_runs
from resources.journal.schema import calls, results
from resources.store import DATABASE_ENV, STORE_ENV, Store
from sr_bench_assets.plans.freeze import freeze_file
from sr_bench_assets.plans.plan_store import put_plan
from tests.cli.evaluation import Bench
from tests.planning import manifest_document, publish_cases
from tests.requirement import missing
from tests.servers.lab import RunningLab, lab_in_process
from tests.servers.postgres import running_postgres, why_not

CASES = 10
LATENCY = {"ttft_ms": 150, "jitter": 0.5, "tokens_per_second": 200}
PRICE = {"input": "1", "cached_input": "1", "cache_write": "1", "output": "1"}
LAB: dict[str, Any] = {
    "version": "sr-bench-lab-1",
    "models": {
        "lab-model": {"latency": LATENCY, "prices": PRICE, "output_tokens": 30},
        "lab-broken": {
            "latency": {"ttft_ms": 1},
            "prices": PRICE,
            # An answer by which the server says that it did not process the request: its billing is known.
            "faults": [{"kind": "http_error", "status": 400, "rate": 0.5, "first_attempts": 1}],
        },
    },
}


@dataclass
class World:
    """A store, its journal, `sr-bench` on it, and a lab that outlives whatever is killed."""

    bench: Bench
    store: Store
    journal: Journal
    lab: RunningLab
    numbers: Iterator[int]

    def plan(self, target_id: str = "lab-model") -> Path:
        """A frozen plan of CASES cells; no two plans send the same bytes."""
        number = next(self.numbers)
        document = manifest_document(
            publish_cases(self.store, CASES),
            name=f"plan-{number}",
            targets=[target for target in self.lab.targets if target["id"] == target_id],
            limits={"concurrency": 3},
            sampling={"seed": number, "max_tokens": 100},
        )
        path = self.bench.folder / f"plan-{number}.json"
        path.write_text(json.dumps(document), encoding="utf-8")
        plan = freeze_file(path, self.store, {})
        path.write_bytes(put_plan(self.store, plan).read_bytes())
        return path

    def command(self, *arguments: str) -> subprocess.Popen[bytes]:
        """A command that was started and is not waited for."""
        return subprocess.Popen(
            [sys.executable, "-m", "cli.main", "--json", *arguments],
            env=self.bench.environment(),
            cwd=self.bench.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def count(self, table: Any, run_id: str) -> int:
        with self.journal.connect() as connection:
            query = select(func.count()).select_from(table).where(table.c.run_id == run_id)
            return int(connection.execute(query).scalar_one())

    def kill_runner(self, run_id: str) -> None:
        """Kill the process that holds a lease of the run; at the very end it may just have given it back."""
        runner = live_runner(self.journal, run_id)
        if runner is None:
            assert get_run(self.journal, run_id).is_terminal
        else:
            os.kill(runner.pid, signal.SIGKILL)

    def states(self, *run_ids: str) -> dict[str, str]:
        """Case → how it ended, in the one of these runs in which it did."""
        found = [row for run_id in run_ids for row in list_results(self.journal, run_id)]
        assert len({row.case_id for row in found}) == len(found), "a cell has two states"
        return {row.case_id: row.status for row in found}


def until(condition: Callable[[], object], timeout: float = 30) -> None:
    give_up = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < give_up, "waited in vain"
        time.sleep(0.005)


@contextmanager
def a_world(folder: Path, database: str | None) -> Iterator[World]:
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.delenv(STORE_ENV, raising=False)
        patch.delenv(DATABASE_ENV, raising=False)
        if database is not None:
            patch.setenv(DATABASE_ENV, database)
        bench = Bench(folder, {} if database is None else {DATABASE_ENV: database})
        store = Store.open(bench.store)
        publish_cases(store, CASES)
        lab = stack.enter_context(lab_in_process(folder, LAB, datasets=[store.datasets_dir]))
        journal = open_journal(store)
        yield World(bench, store, journal, lab, itertools.count(1))
        journal.close()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with a_world(tmp_path_factory.mktemp("crashes"), None) as made:
        yield made


INSTANTS: dict[str, Callable[[World, str], bool]] = {
    "with its lease": lambda world, run_id: live_runner(world.journal, run_id) is not None,
    "calls in flight": lambda world, run_id: world.count(calls, run_id) > 1,
    "half done": lambda world, run_id: world.count(results, run_id) >= CASES // 2,
    "all cells ended": lambda world, run_id: world.count(results, run_id) == CASES,
}


@pytest.mark.parametrize("instant", INSTANTS)
def test_killed_runner_is_reconciled_and_continued(world: World, instant: str) -> None:
    kill_and_continue(world, instant)


@pytest.mark.postgres
def test_killed_runner_on_postgresql(tmp_path: Path) -> None:
    if reason := why_not():
        missing("postgres", reason)
    with running_postgres() as server, a_world(tmp_path, server.create_database("crashes")) as world:
        kill_and_continue(world, "half done")


def kill_and_continue(world: World, instant: str) -> None:
    """Kill the runner of a new run at `instant`, continue what is left in a child, and account for every cell."""
    sent_before = world.lab.stats()["requests"]
    started = world.bench.ok("run", "--manifest", str(world.plan()), "--detach")["run_id"]
    until(lambda: INSTANTS[instant](world, started))
    world.kill_runner(started)
    completed = {case for case, status in world.states(started).items() if status == "completed"}

    file = world.bench.folder / f"{started}.json"
    recovery = world.bench.ok("recover-plan", started, "--mode", "undispatched", "--output", str(file))
    parent = get_run(world.journal, started)
    assert parent.is_terminal
    assert sum(recovery["counts"].values()) == CASES
    ended = [started]
    if recovery["eligible"]:
        assert parent.status == "interrupted"
        arguments = ("recover", started, "--plan", str(file), "--idempotency-key", f"again-{started}")
        child = world.bench.ok(*arguments)
        assert (child["status"], child["parent_run_id"]) == ("completed", started)
        if instant == "half done":
            # The same key again: the same child, nothing sent, nothing claimed twice.
            sent = world.lab.stats()["requests"]
            assert world.bench.ok(*arguments)["id"] == child["id"]
            assert world.lab.stats()["requests"] == sent
        ended.append(child["id"])

    states = world.states(*ended)
    assert len(states) == CASES
    assert {case for case in completed if states[case] != "completed"} == set()
    assert world.states(started).items() <= states.items()
    stats = world.lab.stats()
    assert stats["resends"] == 0
    assert stats["requests"] - sent_before <= CASES
    for run_id in ended:
        run = get_run(world.journal, run_id)
        assert run.reserved_usd == 0
        assert run.spent_usd + run.unknown_usd <= run.budget_usd


def test_two_simultaneous_submissions_are_one_run(world: World) -> None:
    sent_before = world.lab.stats()["requests"]
    arguments = ("run", "--manifest", str(world.plan()), "--idempotency-key", "both")
    commands = [world.command(*arguments) for _ in range(2)]
    answers = [command.communicate(timeout=60) for command in commands]
    assert [command.returncode for command in commands] == [0, 0], answers
    first, second = (json.loads(out) for out, _ in answers)
    assert first["id"] == second["id"]
    assert world.states(first["id"]) == dict.fromkeys(world.states(first["id"]), "completed")
    assert world.lab.stats()["requests"] - sent_before == CASES


def test_lost_acknowledgement_of_a_submission(world: World) -> None:
    sent_before = world.lab.stats()["requests"]
    arguments = ("run", "--manifest", str(world.plan()), "--idempotency-key", "lost")
    command = world.command(*arguments)
    until(lambda: find_run_by_key(world.journal, "lost") is not None)
    command.kill()
    command.communicate()
    answered = world.bench.ok(*arguments)
    found = find_run_by_key(world.journal, "lost")
    assert found is not None
    assert answered["id"] == found.id
    assert answered["status"] == "completed"
    assert world.lab.stats()["requests"] - sent_before == CASES


def test_killed_submission_without_a_key_can_be_ended(world: World) -> None:
    known = {run.id for run in list_runs(world.journal)}
    command = world.command("run", "--manifest", str(world.plan()), "--detach")
    until(lambda: len(list_runs(world.journal)) > len(known))
    command.kill()
    command.communicate()
    (run,) = [run for run in list_runs(world.journal) if run.id not in known]
    world.bench("--json", "cancel", run.id)
    until(lambda: get_run(world.journal, run.id).is_terminal)
    assert world.lab.stats()["resends"] == 0


def test_failed_cells_need_an_acknowledged_new_attempt(world: World) -> None:
    run = world.bench.ok("run", "--manifest", str(world.plan("lab-broken")))
    failed = {case for case, status in world.states(run["id"]).items() if status == "failed"}
    assert failed
    file = world.bench.folder / "failed.json"
    recovery = world.bench.ok("recover-plan", run["id"], "--mode", "failed", "--output", str(file))
    chosen = [{"case_id": cell["case_id"], "target_id": cell["target_id"]} for cell in recovery["eligible"]]
    assert {cell["case_id"] for cell in chosen} == failed
    file.write_text(json.dumps({**recovery, "selected_cells": chosen}))
    sent = world.lab.stats()["requests"]
    arguments = ("recover", run["id"], "--plan", str(file), "--idempotency-key", "retry")

    refused = world.bench("--json", *arguments)
    assert refused.code == 2
    assert json.loads(refused.err.splitlines()[-1])["error"]["code"] == "not_acknowledged"
    assert world.lab.stats()["requests"] == sent

    child = world.bench.ok(*arguments, "--acknowledge-new-attempt")
    assert child["status"] == "completed"
    assert world.states(child["id"]) == dict.fromkeys(failed, "completed")
    assert world.lab.stats()["requests"] == sent + len(failed)
