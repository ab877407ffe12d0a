"""The Dagster UI in headless Chromium: what it shows of a run, and partitions launched and stopped from its pages."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cli.evaluation import Bench
from tests.requirement import missing
from tests.servers.lab import RunningLab, lab_config, lab_in_process

try:
    from playwright.sync_api import expect

    from tests.ui.dagster_page import CHROMIUM, DagsterUi, browser, running_ui, until
except ImportError as error:
    missing("chromium", str(error))

BENCHMARK = "mmlu-pro"
CELLS = 14 * 3
STOPPED_WITHIN_S = 2.0

# One UI serves all tests of this module, in order, in one process.
pytestmark = pytest.mark.timeout(180)


@dataclass
class Scene:
    """A store with two datasets and no plan, a lab, and the UI on it."""

    bench: Bench
    ui: DagsterUi
    quick: dict[str, Any]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    if not CHROMIUM.exists():
        missing("chromium", f"{CHROMIUM} is not there")
    bench = Bench(tmp_path_factory.mktemp("ui"))
    bench.dataset("smoke")
    quick = bench.dataset("quick", limit=140)
    with running_ui(bench.environment(), bench.folder) as url, browser() as chromium:
        page = chromium.new_page(viewport={"width": 1400, "height": 900})
        yield Scene(bench, DagsterUi(page, url), quick)


@pytest.fixture(scope="module")
def lab(scene: Scene) -> Iterator[RunningLab]:
    with lab_in_process(scene.bench.folder, datasets=[scene.bench.store / "datasets"]) as running:
        register(scene.bench, running)
        yield running


@pytest.fixture
def slow_lab(scene: Scene, lab: RunningLab, tmp_path: Path) -> Iterator[RunningLab]:
    """A lab whose models take many seconds to answer, registered in the place of the quick one."""
    config = lab_config(time_scale=30)
    with lab_in_process(tmp_path, config, datasets=[scene.bench.store / "datasets"]) as running:
        register(scene.bench, running)
        yield running
        register(scene.bench, lab)


def register(bench: Bench, lab: RunningLab) -> None:
    file = bench.folder / "targets.json"
    file.write_text(json.dumps(lab.targets))
    bench.ok("target", "register", "--file", str(file))


def test_graph_shows_assets_and_the_dataset_that_a_command_prepared(scene: Scene) -> None:
    page = scene.ui.asset_graph()
    stages = ("prepared_dataset", "frozen_plan", "target_results", "reconciled_usage", "benchmark_report")
    for asset in (*stages, "scorecard"):
        expect(page.locator("svg").get_by_text(asset).first).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)  # nothing asks a first visitor for an address
    page = scene.ui.partition("prepared_dataset", BENCHMARK, "smoke")
    expect(page.get_by_text("sample questions of the tests").first).to_be_visible()
    expect(page.get_by_role("cell", name="biology", exact=True)).to_be_visible()


def test_partition_launched_without_a_plan_calls_the_registered_targets(
    scene: Scene, lab: RunningLab
) -> None:
    launched = scene.ui.materialize(BENCHMARK, "smoke")

    assert scene.ui.ended(launched) == "SUCCESS"
    stats = lab.stats()
    assert (stats["requests"], stats["resends"]) == (CELLS, 0)
    (run,) = scene.bench.ok("runs")
    assert (run["status"], run["progress"]["completed"]) == ("completed", CELLS)
    tags = {tag["key"]: tag["value"] for tag in scene.ui.run(launched)["tags"]}
    assert tags["sr_bench/run_id"] == run["id"]
    assert tags["sr_bench/plan_sha256"] == run["plan_sha256"]

    page = scene.ui.partition("benchmark_report", BENCHMARK, "smoke")
    report = scene.bench.ok("report", run["id"])
    for target in report["targets"]:
        row = page.get_by_role("row").filter(has=page.get_by_role("cell", name=target["id"], exact=True))
        expect(row.last).to_contain_text(f"{target['correct']}/14")
    page.get_by_text("[Show Markdown]").click()
    expect(page.get_by_text("What this does not show")).to_be_visible()
    page = scene.ui.open("/assets/target_results?view=checks")
    for check in ("denominator_is_the_plan", "within_budget", "every_cell_ended"):
        expect(page.get_by_text(check).first).to_be_visible()
    expect(page.get_by_text("Succeeded")).to_have_count(3)


def test_materializing_again_sends_nothing_and_gives_the_same_versions(scene: Scene, lab: RunningLab) -> None:
    stages = ("prepared_dataset", "frozen_plan", "target_results", "reconciled_usage", "benchmark_report")
    before = {asset: scene.ui.data_version(asset, BENCHMARK, "smoke") for asset in stages}
    requests = lab.stats()["requests"]

    assert scene.ui.ended(scene.ui.materialize(BENCHMARK, "smoke")) == "SUCCESS"

    assert lab.stats()["requests"] == requests
    assert {asset: scene.ui.data_version(asset, BENCHMARK, "smoke") for asset in stages} == before
    assert len(scene.bench.ok("runs")) == 1


def test_terminating_a_launched_run_stops_its_calls(scene: Scene, slow_lab: RunningLab) -> None:
    launched = scene.ui.materialize(BENCHMARK, "quick")
    until(lambda: slow_lab.stats()["inflight"])

    scene.ui.terminate(launched)

    sent = calls_stopped(slow_lab)
    assert scene.ui.ended(launched) in ("CANCELED", "FAILURE")
    run = scene.bench.ok("runs")[0]
    assert run["profile"] == "quick"
    assert_journaled(scene.bench.wait(run["id"]), sent)
    assert slow_lab.stats()["requests"] == sent


def test_marking_a_command_line_run_as_cancelled_stops_its_calls(scene: Scene, slow_lab: RunningLab) -> None:
    frozen, _ = scene.bench.frozen("slow", scene.quick, slow_lab.targets)
    run_id = scene.bench.ok("run", "--manifest", str(frozen), "--detach")["run_id"]
    until(lambda: slow_lab.stats()["inflight"])
    in_dagster = until(lambda: dagster_run_of(scene.ui, run_id))

    scene.ui.terminate(in_dagster)

    sent = calls_stopped(slow_lab)
    run = scene.bench.wait(run_id)
    assert run["status"] == "cancelled"
    assert "Dagster" in run["reason"]
    assert_journaled(run, sent)
    assert slow_lab.stats()["requests"] == sent


def test_terminal_stays_quiet(scene: Scene) -> None:
    """After all of the above, what `sr-bench ui` printed is its address, and no error of ours."""
    lines = (scene.bench.folder / "ui.log").read_text()
    assert re.search(r"^Dagster UI: http://127\.0\.0\.1:\d+ ", lines, re.MULTILINE)
    assert "DEBUG" not in lines
    assert "BetaWarning" not in lines


def dagster_run_of(ui: DagsterUi, run_id: str) -> str | None:
    for run in ui.runs():
        started = run["status"] == "STARTED"
        if started and {"key": "sr_bench/run_id", "value": run_id} in run["tags"]:
            return run["runId"]
    return None


def calls_stopped(lab: RunningLab) -> int:
    """Wait for the last call to end, which must not take long; the number of requests so far."""
    clicked = time.monotonic()
    until(lambda: not lab.stats()["inflight"], 10)
    assert time.monotonic() - clicked < STOPPED_WITHIN_S
    return lab.stats()["requests"]


def assert_journaled(run: dict[str, Any], sent: int) -> None:
    """Every cell that was sent has exactly one end, all others stand as never sent."""
    progress = run["progress"]
    assert (progress["running"], progress["ambiguous"]) == (0, 0)
    assert progress["completed"] + progress["failed"] == sent
    assert progress["undispatched"] == progress["total"] - sent
