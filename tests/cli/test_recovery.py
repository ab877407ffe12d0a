"""`recover-plan` and `recover` as commands, up to the child run (its runner is tested elsewhere)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cli.main import app
from resources.errors import SrBenchError
from resources.journal.connection import open_journal
from resources.journal.runs import create_run, finish_run, start_run
from resources.store import Store
from sr_bench_assets.plans.freeze import frozen_from
from tests.planning import manifest_document, publish_cases, single
from tests.servers.lab import lab_in_thread


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.delenv("SR_BENCH_DATABASE_URL", raising=False)
    return Store.open(tmp_path / "store")


@pytest.fixture
def labs() -> Iterator[ExitStack]:
    """Closing it ends the endpoint of the run's target."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def parent_id(store: Store, tmp_path: Path, labs: ExitStack) -> str:
    """A run that ended before its first call."""
    file = tmp_path / "m.json"
    lab = labs.enter_context(lab_in_thread())
    target = single(base_url=lab.base_url)
    file.write_text(json.dumps(manifest_document(publish_cases(store), targets=[target])))
    plan = frozen_from(file, store, {})
    journal = open_journal(store)
    run, _ = create_run(
        journal,
        plan_sha256=plan.plan_sha256,
        name=plan.name,
        mode=plan.mode,
        profile=plan.profile,
        total_cells=3,
        budget_usd=plan.limits.max_cost_usd,
    )
    start_run(journal, run.id)
    finish_run(journal, run.id, "cancelled")
    journal.close()
    return run.id


@pytest.fixture
def spawned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Ids of the runs that a runner was started for; none really starts."""
    started: list[str] = []
    monkeypatch.setattr("cli.launch.spawn_runner", lambda _store, run_id: started.append(run_id))
    return started


def _run(store: Store, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["--store", str(store.root), *arguments], standalone_mode=False)


def test_from_plan_to_child(store: Store, parent_id: str, spawned: list[str], tmp_path: Path) -> None:
    file = str(tmp_path / "recovery.json")
    printed = _run(store, "recover-plan", parent_id[:8], "--mode", "undispatched", "--output", file)
    document: dict[str, Any] = json.loads(printed.stdout)
    assert document["counts"] == {"eligible": 3}
    assert json.loads(Path(file).read_text()) == document
    document["selected_cells"] = [
        {"case_id": cell["case_id"], "target_id": cell["target_id"]} for cell in document["eligible"][:2]
    ]
    Path(file).write_text(json.dumps(document))
    arguments = ("recover", parent_id, "--plan", file, "--idempotency-key", "k", "--detach")
    answers = [json.loads(_run(store, *arguments).stdout) for _ in range(2)]
    assert answers[0] == answers[1]
    assert (answers[0]["parent_run_id"], answers[0]["status"]) == (parent_id, "queued")
    # The second submission found the child still queued: its runner may never have started.
    assert spawned == [answers[0]["run_id"]] * 2


def test_retrying_failures_is_refused_without_acknowledgement(
    store: Store, parent_id: str, spawned: list[str], tmp_path: Path
) -> None:
    file = str(tmp_path / "recovery.json")
    _run(store, "recover-plan", parent_id, "--mode", "failed", "--output", file)
    refused = _run(store, "recover", parent_id, "--plan", file, "--detach")
    assert isinstance(refused.exception, SrBenchError)
    assert refused.exception.code == "not_acknowledged"
    assert spawned == []


def test_what_is_no_recovery_plan(store: Store, parent_id: str, spawned: list[str], tmp_path: Path) -> None:
    file = tmp_path / "recovery.json"
    file.write_text('{"run_id": "x", "cells": []}')
    refused = _run(store, "recover", parent_id, "--plan", str(file), "--detach")
    assert isinstance(refused.exception, SrBenchError)
    assert "cells" in {problem["field"] for problem in refused.exception.as_dict()["problems"]}
    assert spawned == []


def test_an_endpoint_that_is_down_claims_no_cell(
    store: Store, parent_id: str, spawned: list[str], tmp_path: Path, labs: ExitStack
) -> None:
    file = str(tmp_path / "recovery.json")
    _run(store, "recover-plan", parent_id, "--mode", "undispatched", "--output", file)
    document = json.loads(Path(file).read_text())
    document["selected_cells"] = [
        {"case_id": cell["case_id"], "target_id": cell["target_id"]} for cell in document["eligible"]
    ]
    Path(file).write_text(json.dumps(document))
    labs.close()
    refused = _run(store, "recover", parent_id, "--plan", file)
    assert isinstance(refused.exception, SrBenchError)
    assert refused.exception.code == "unreachable_endpoint"
    again = _run(store, "recover-plan", parent_id, "--mode", "undispatched")
    assert json.loads(again.stdout)["counts"] == {"eligible": 3}
    assert spawned == []
