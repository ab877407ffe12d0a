"""Makes the screenshots of this folder: a demo run, the Dagster UI on it, headless Chromium.

    python docs/images/make.py                # on a store of its own, gone afterwards
    python docs/images/make.py --store demo-store

Needs the `dev` extra and Chromium (SR_BENCH_TEST_CHROMIUM names it where it is not /usr/bin/chromium).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.ui.dagster_page import DagsterUi, browser, running_ui  # noqa: E402  # found by the line above

FOLDER = Path(__file__).resolve().parent
WIDE = {"width": 1400, "height": 760}
TALL = {"width": 1400, "height": 1960}


def shoot(ui: DagsterUi) -> None:
    """Both pictures, by what a person would click."""
    # From the newest code's metadata, in a store that older code may have filled; sends nothing.
    ui.ended(ui.materialize("mmlu-pro", "quick"))
    ui.page.set_viewport_size(TALL)
    page = ui.asset_graph()
    page.get_by_role("button", name="Hide navigation").click()
    page.get_by_role("button", name="settings", exact=True).last.click()
    page.get_by_role("menuitem", name="vertical orientation").click()
    page.reload()  # lays out anew, as large as it fits
    page.get_by_text("Passed").or_(page.get_by_text("Checks")).first.wait_for()
    page.wait_for_timeout(3000)
    page.screenshot(path=FOLDER / "asset-graph.png")

    ui.page.set_viewport_size(WIDE)
    page = ui.partition("benchmark_report", "mmlu-pro", "quick")
    page.get_by_text("[Show Markdown]").wait_for()
    page.wait_for_timeout(1500)
    page.screenshot(path=FOLDER / "report-metadata.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--store", type=Path, help="the store of a demo run; default: make one")
    given: Path | None = parser.parse_args().store
    with tempfile.TemporaryDirectory() as folder:
        store = given.resolve() if given else Path(folder) / "store"
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "SR_BENCH_STORE": str(store)}
        if given is None:
            demo = [sys.executable, str(ROOT / "examples/demo/run.py"), "--store", str(store), "--port", "0"]
            subprocess.run(demo, check=True, env=environment, stdout=subprocess.DEVNULL)
        with running_ui(environment, Path(folder)) as url, browser() as chromium:
            shoot(DagsterUi(chromium.new_page(viewport=WIDE), url))


if __name__ == "__main__":
    main()
