"""The main job end to end: prepare, plan, run, report, compare, with a real lab gateway and real processes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.evaluation import Bench, routers, singles
from tests.servers.lab import RunningLab, lab_config, lab_in_process

SECRET = "sk-test-7f3a9c1e5b2d"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture
def lab(bench: Bench) -> Iterator[RunningLab]:
    dataset = bench.dataset()
    with lab_in_process(bench.folder, datasets=[Path(dataset["path"])]) as running:
        yield running


def test_singles_and_router_from_prepare_to_compare(bench: Bench, lab: RunningLab) -> None:
    dataset = bench.dataset()
    baseline_file, plan = bench.frozen("baseline", dataset, singles(lab))
    candidate_file, _ = bench.frozen("candidate", dataset, routers(lab))

    baseline = bench.ok("run", "--manifest", str(baseline_file), "--idempotency-key", "one")
    candidate = bench.ok("run", "--manifest", str(candidate_file))

    assert baseline["status"] == candidate["status"] == "completed"
    assert baseline["progress"] == {
        "total": 28, "completed": 28, "failed": 0, "running": 0, "undispatched": 0, "ambiguous": 0,
    }  # fmt: skip
    assert lab.stats()["requests"] == 42
    report = bench.ok("report", baseline["id"])
    assert report["lab"] is True
    assert report["complete"] is True
    assert report["plan_sha256"] == plan["plan_sha256"]
    for target in report["targets"]:
        low, high = target["accuracy_ci95"]
        assert target["planned"] == target["scored"] == 14
        assert low <= target["accuracy"] <= high
        assert target["cost_usd"] is not None
    reconciled = bench.ok("reconcile-usage", baseline["id"])
    assert reconciled["counts"]["verified"] == 28
    compared = bench.ok("compare", baseline["id"], candidate["id"])
    (row,) = compared["comparisons"]
    assert row["paired_cases"] == 14
    assert row["wins"] + row["losses"] + row["ties"] == 14
    assert row["quality_delta_ci95_method"]


def test_repeated_key_sends_nothing(bench: Bench, lab: RunningLab) -> None:
    file, _ = bench.frozen("plan", bench.dataset(), singles(lab))
    first = bench.ok("run", "--manifest", str(file), "--idempotency-key", "key")
    sent = lab.stats()["requests"]

    again = bench.ok("run", "--manifest", str(file), "--idempotency-key", "key")
    detached = bench.ok("run", "--manifest", str(file), "--idempotency-key", "key", "--detach")

    assert again["id"] == first["id"] == detached["run_id"]
    assert detached["status"] == "completed"
    assert lab.stats()["requests"] == sent
    other, _ = bench.frozen("other", bench.dataset(), singles(lab)[:1])
    refused = bench("--json", "run", "--manifest", str(other), "--idempotency-key", "key")
    assert refused.code == 2
    assert json.loads(refused.err.splitlines()[-1])["error"]["code"] == "idempotency_conflict"


def test_no_key_value_anywhere_in_the_store(bench: Bench, lab: RunningLab) -> None:
    bench.env["LAB_KEY"] = SECRET
    targets = [{**target, "api_key_env": "LAB_KEY"} for target in lab.targets]
    file, _ = bench.frozen("secret", bench.dataset(), targets)
    run = bench.ok("run", "--manifest", str(file))
    bench.ok("reconcile-usage", run["id"])
    bench.ok("report", run["id"])

    holding = [
        path.relative_to(bench.store)
        for path in bench.store.rglob("*")
        if path.is_file() and SECRET.encode() in path.read_bytes()
    ]

    assert lab.stats()["requests"] == 42
    assert holding == []


def test_store_is_for_its_owner_only(bench: Bench, lab: RunningLab) -> None:
    file, _ = bench.frozen("plan", bench.dataset(), singles(lab)[:1])
    bench.ok("run", "--manifest", str(file))
    assert bench.store.stat().st_mode & 0o777 == 0o700


def test_cancel_stops_within_two_seconds(bench: Bench) -> None:
    dataset = bench.dataset()
    slow = lab_config(time_scale=1, faults=[{"kind": "stall", "always": True}])
    with lab_in_process(bench.folder, slow, datasets=[Path(dataset["path"])]) as lab:
        file, _ = bench.frozen("slow", dataset, singles(lab)[:1], limits={"concurrency": 2})
        started = bench.ok("run", "--manifest", str(file), "--detach")
        _until(lambda: lab.stats()["requests"] == 2)
        bench.ok("cancel", started["run_id"])
        run = bench.wait(started["run_id"], timeout=20)

        assert run["status"] == "cancelled"
        assert run["progress"]["undispatched"] == 12
        assert run["progress"]["failed"] == 2
        assert lab.stats()["requests"] == 2
    # By the journal's own times: starting commands on a busy machine takes longer than the promise.
    calls = bench.ok("show", started["run_id"], "--calls")["calls"]
    (asked,) = _column(bench, "select cancel_requested_at from runs")
    assert [call["failure"] for call in calls] == ["cancelled", "cancelled"]
    assert all(call["finished_at"] - asked < 2 for call in calls)
    assert bench("cancel", started["run_id"]).code == 2


def test_killed_runner_leaves_each_cell_in_one_state(bench: Bench) -> None:
    dataset = bench.dataset()
    slow = lab_config(time_scale=1, faults=[{"kind": "stall", "always": True}])
    with lab_in_process(bench.folder, slow, datasets=[Path(dataset["path"])]) as lab:
        file, _ = bench.frozen("killed", dataset, singles(lab)[:1], limits={"concurrency": 3})
        started = bench.ok("run", "--manifest", str(file), "--detach")
        _until(lambda: lab.stats()["requests"] == 3)
        os.kill(_runner_pid(bench, started["run_id"]), signal.SIGKILL)

        run = bench.wait(started["run_id"], timeout=10)

    assert run["status"] == "interrupted"
    assert run["progress"]["ambiguous"] == 3
    assert run["progress"]["undispatched"] == 11


def test_interrupted_wait_leaves_the_run_going(bench: Bench) -> None:
    dataset = bench.dataset()
    slow = lab_config(time_scale=3)
    with lab_in_process(bench.folder, slow, datasets=[Path(dataset["path"])]) as lab:
        file, _ = bench.frozen("wait", dataset, singles(lab)[:1], limits={"concurrency": 1})
        command = [sys.executable, "-m", "cli.main", "run", "--manifest", str(file)]
        waiting = subprocess.Popen(
            command, env=bench.environment(), stderr=subprocess.PIPE, stdout=subprocess.PIPE
        )
        _until(lambda: lab.stats()["requests"] >= 1)
        waiting.send_signal(signal.SIGINT)
        _, err = waiting.communicate(timeout=20)
        assert waiting.returncode == 130, err
        assert b"goes on" in err
        (run,) = bench.ok("runs")
        assert bench.wait(run["id"])["status"] == "completed"


def _runner_pid(bench: Bench, run_id: str) -> int:
    (pid,) = _column(bench, "select pid from run_leases where run_id = ?", run_id)
    return pid


def _column(bench: Bench, query: str, *values: str) -> list[Any]:
    with contextlib.closing(sqlite3.connect(bench.store / "journal.sqlite3")) as connection:
        return [row[0] for row in connection.execute(query, values)]


def _until(condition: object, timeout: float = 30) -> None:
    assert callable(condition)
    until = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.05)
