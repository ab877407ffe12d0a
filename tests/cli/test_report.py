"""`report`, `compare`, `reconcile-usage` and `rebuild` as commands."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cli.main import app
from resources.errors import Incomplete, NotFound, SrBenchError
from resources.journal.connection import open_journal
from resources.store import Store
from tests.finished_runs import Outcome, finished_run, from_text, frozen_plan, mom, single

DIRECT = {"x-vsr-selected-model": "Flash", "x-vsr-inference-call-count": "1"}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    for name in ("SR_BENCH_DATABASE_URL", "SR_BENCH_OBJECTS_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SR_BENCH_STORE", str(tmp_path / "store"))
    return Store.open(None)


@pytest.fixture
def run_id(store: Store) -> Iterator[str]:
    journal = open_journal(store)
    plan = frozen_plan([single("GLM"), single("Flash"), mom()])
    text = {"GLM": "1110", "Flash": "1000", "MoM": "1111"}
    yield finished_run(store, journal, plan, from_text(text, headers=DIRECT))
    journal.engine.dispose()


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments, standalone_mode=False)


def data(*arguments: str) -> Any:
    result = invoke(*arguments)
    assert result.exception is None, result.exception
    return json.loads(result.stdout)


def test_report_prints_json_where_stdout_is_no_terminal(run_id: str) -> None:
    found = data("report", run_id)
    assert found["run_id"] == run_id
    assert [target["correct"] for target in found["targets"]] == [3, 1, 4]
    assert data("report", run_id, "--benchmark", "mmlu-pro")["partition"] == "mmlu-pro"


def test_report_writes_json_and_markdown_files(run_id: str, tmp_path: Path) -> None:
    result = invoke("report", run_id, "--output", str(tmp_path / "report.json"))
    assert result.stdout == ""
    assert json.loads((tmp_path / "report.json").read_bytes()) == data("report", run_id)
    invoke("report", run_id, "--output", str(tmp_path / "report.md"))
    assert (tmp_path / "report.md").read_text().startswith("# Development comparison")
    wrong = invoke("report", run_id, "--output", str(tmp_path / "report.docx")).exception
    assert isinstance(wrong, SrBenchError)
    assert wrong.field == "--output"
    assert not (tmp_path / "report.docx").exists()


def test_report_on_a_terminal(run_id: str) -> None:
    result = invoke("report", run_id, "--format", "terminal")
    assert "accuracy" in result.stdout
    assert "100.0 %" in result.stdout


def test_compare_prints_json_and_csv(run_id: str) -> None:
    found = data("compare", run_id)
    assert found["baseline_target_id"] == "GLM"
    assert found["comparisons"][0]["target_id"] == "MoM"
    (row,) = csv.DictReader(invoke("compare", run_id, "--format", "csv").stdout.splitlines())
    assert row["wins"] == "1"


def test_unknown_runs_are_not_found(run_id: str) -> None:
    for command in ("report", "compare", "reconcile-usage", "rebuild"):
        error = invoke(command, "ffffffffffff").exception
        assert isinstance(error, NotFound), command
        assert error.exit_code == 3


def test_reconcile_usage_and_rebuild(run_id: str) -> None:
    found = data("reconcile-usage", run_id)
    assert found["counts"]["verified"] == 12
    assert data("reconcile-usage", run_id) == found
    assert data("report", run_id)["provenance"]["accounting"]["sha256"] == found["sha256"]
    assert data("rebuild", run_id)["equal"] == 12


def test_rebuild_fails_where_records_differ(store: Store) -> None:
    journal = open_journal(store)
    plan = frozen_plan([single("Flash")])
    run_id = finished_run(store, journal, plan, lambda *_: Outcome(recorded={"model": "GLM"}))
    result = invoke("rebuild", run_id)
    assert isinstance(result.exception, Incomplete)
    assert json.loads(result.stdout)["different"][0]["fields"] == ["model"]


def test_rebuild_fails_where_evidence_is_gone(store: Store, run_id: str) -> None:
    for segment in store.evidence_dir(run_id).iterdir():
        segment.unlink()
    result = invoke("rebuild", run_id)
    assert isinstance(result.exception, Incomplete)
    found = json.loads(result.stdout)
    assert found["without_evidence"] == found["equal"] == 0
    assert {tuple(item["fields"]) for item in found["different"]} == {("evidence",)}
