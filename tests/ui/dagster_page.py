"""The Dagster UI of a store in a real browser: starting both, and what a person does on the pages."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from playwright.sync_api import Browser, Page, expect, sync_playwright

CHROMIUM = Path(os.environ.get("SR_BENCH_TEST_CHROMIUM", "/usr/bin/chromium"))
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
T = TypeVar("T")
PATIENCE_S = 60


@contextmanager
def browser() -> Iterator[Browser]:
    """Headless Chromium with a profile of its own, gone afterwards."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        try:
            yield chromium
        finally:
            chromium.close()


@contextmanager
def running_ui(environment: dict[str, str], folder: Path) -> Iterator[str]:
    """`sr-bench ui` as a user starts it; yields its address when it answers."""
    port = free_port()
    command = [sys.executable, "-m", "cli.main", "ui", "--port", str(port)]
    log = folder / "ui.log"
    with log.open("wb") as stream:
        process = subprocess.Popen(command, env=environment, cwd=folder, stdout=stream, stderr=stream)
    try:
        until(lambda: "Dagster UI: http" in log.read_text() or process.poll() is not None)
        assert process.poll() is None, log.read_text()
        yield f"http://127.0.0.1:{port}"
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def until(found: Callable[[], T | None], patience_s: float = PATIENCE_S) -> T:
    """What `found` returns once it is true."""
    deadline = time.monotonic() + patience_s
    while not (value := found()):
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)
    return value


class DagsterUi:
    """One browser page on a Dagster UI."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url
        # A busy machine loads the code location in many seconds.
        page.set_default_timeout(30_000)
        expect.set_options(timeout=30_000)

    def open(self, path: str) -> Page:
        self.page.goto(self.url + path)
        return self.page

    def asset_graph(self) -> Page:
        """The lineage of the evaluation's assets, near enough to show their checks."""
        page = self.open("/locations/sr_bench/asset-groups/evaluation/lineage")
        expect(page.locator("svg").get_by_text("benchmark_report")).to_be_visible()
        return page

    def partition(self, asset: str, benchmark: str, profile: str) -> Page:
        """The page of one partition of an asset with its metadata."""
        page = self.open(f"/assets/{asset}?view=partitions&partition={benchmark}%7C{profile}")
        expect(page.get_by_text(f"{benchmark}|{profile}").first).to_be_visible()
        return page

    def materialize(self, benchmark: str, profile: str) -> str:
        """Click through Materialize on the evaluation job for one partition; the new Dagster run's id."""
        before = {run["runId"] for run in self.runs()}
        page = self.open("/locations/sr_bench/jobs/evaluate")
        page.get_by_role("button", name="Materialize all").click()
        launchpad = page.get_by_text("Partition selection")
        doubt = page.get_by_role("button", name="Confirm")
        expect(launchpad.or_(doubt)).to_be_visible()
        if doubt.is_visible():  # an asset before these was never materialized; they do not need it
            doubt.click()
        for key in (benchmark, profile):
            page.get_by_text("Select a partition or create one").first.click()
            page.get_by_role("menuitem", name=f"{key} {key}").click()
            page.keyboard.press("Escape")
            expect(page.get_by_role("menuitem", name=f"{key} {key}")).to_have_count(0)
        page.get_by_role("button", name="Launch 1 run").click()
        return until(lambda: next((run["runId"] for run in self.runs() if run["runId"] not in before), None))

    def terminate(self, run_id: str) -> None:
        """Click Terminate on a run's page and confirm; forces it where Dagster does not control its process."""
        page = self.open(f"/runs/{run_id}")
        page.get_by_role("button", name="Terminate").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_role("button", name="terminate", exact=False).last.click()

    def run(self, run_id: str) -> dict[str, Any]:
        return next(run for run in self.runs() if run["runId"] == run_id)

    def ended(self, run_id: str) -> str:
        """The status of a run when it has ended."""
        over = ("SUCCESS", "FAILURE", "CANCELED")
        return until(lambda: status if (status := self.run(run_id)["status"]) in over else None)

    def runs(self) -> list[dict[str, Any]]:
        query = "{runsOrError{... on Runs{results{runId status tags{key value}}}}}"
        return self.ask(query)["runsOrError"]["results"]

    def data_version(self, asset: str, benchmark: str, profile: str) -> str:
        """The data version of the newest materialization of a partition."""
        query = (
            "query($asset:AssetKeyInput!,$partitions:[String!]){assetNodeOrError(assetKey:$asset){... on AssetNode"
            "{assetMaterializations(partitions:$partitions,limit:1){tags{key value}}}}}"
        )
        variables = {"asset": {"path": [asset]}, "partitions": [f"{benchmark}|{profile}"]}
        (newest,) = self.ask(query, variables)["assetNodeOrError"]["assetMaterializations"]
        return next(tag["value"] for tag in newest["tags"] if tag["key"] == "dagster/data_version")

    def ask(self, query: str, variables: dict[str, Any] | None = None) -> dict[str, Any]:
        """The answer of the webserver's own GraphQL API, which the pages use."""
        body = json.dumps({"query": query, "variables": variables or {}}).encode()
        request = urllib.request.Request(
            f"{self.url}/graphql", data=body, headers={"content-type": "application/json"}
        )
        with urllib.request.urlopen(request) as response:
            answer = json.load(response)
        assert "errors" not in answer, answer
        return answer["data"]
