"""How a runner that broke leaves its run."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

import cli.runner
from cli.launch import warm_runner
from resources.errors import Unavailable
from resources.journal.connection import Journal, open_journal
from resources.journal.leases import acquire_lease
from resources.journal.runs import Run, create_run, get_run, start_run
from resources.store import DATABASE_ENV, STORE_ENV, Store


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Journal:
    monkeypatch.delenv(DATABASE_ENV, raising=False)
    monkeypatch.setenv(STORE_ENV, str(tmp_path / "store"))
    return open_journal(Store.open(None))


@pytest.fixture
def run(journal: Journal) -> Run:
    return create_run(
        journal,
        plan_sha256="0" * 64,
        name="broken",
        mode="live",
        profile="smoke",
        total_cells=3,
        budget_usd=Decimal(1),
    )[0]


def test_a_run_that_could_not_begin_has_failed(
    journal: Journal, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> int:
        raise Unavailable("the plan's folder is away")

    monkeypatch.setattr("cli.runner._work", broken)
    assert cli.runner.main(run.id) == 2
    ended = get_run(journal, run.id)
    assert (ended.status, ended.reason) == ("failed", "the plan's folder is away")


def test_a_run_that_could_not_be_concluded_is_left_to_reconciliation(
    journal: Journal, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> int:
        acquire_lease(journal, run.id, "mmlu-pro")
        start_run(journal, run.id)
        raise Unavailable("the database was away at the very end")

    monkeypatch.setattr("cli.runner._work", broken)
    assert cli.runner.main(run.id) == 2
    # Its cells may be open still; `failed` would keep reconciliation from giving them their states.
    assert get_run(journal, run.id).status == "running"


def test_a_runner_that_died_while_it_waited_is_replaced(journal: Journal, run: Run) -> None:
    with warm_runner(Store.open(None)) as runner:
        waiting = runner.process
        waiting.kill()
        waiting.wait()
        runner.hand_over(run.id)
    assert runner.process is not waiting
    assert runner.process.wait(60) == 2  # it took the run and found that there is no such plan
    assert get_run(journal, run.id).status == "failed"
