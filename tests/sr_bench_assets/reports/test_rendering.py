"""How reports look: terminal, Markdown, numbers."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from resources.journal.connection import Journal
from resources.store import Store
from sr_bench_assets.reports import numbers
from sr_bench_assets.reports.comparison import compare_runs
from sr_bench_assets.reports.markdown import comparison_markdown, report_markdown, scorecard_table
from sr_bench_assets.reports.report import build_report
from sr_bench_assets.reports.scorecard import build_scorecard
from sr_bench_assets.reports.terminal import print_comparison, print_report, reading
from tests.finished_runs import finished_run, from_text, frozen_plan, mom, single

DIRECT = {"x-vsr-selected-model": "Flash", "x-vsr-inference-call-count": "1"}
COUNTS = {"mmlu-pro": 4, "gpqa-diamond": 2}


def run(store: Store, journal: Journal, name: str = "Demo") -> str:
    plan = frozen_plan(
        [single("GLM"), single("Flash"), mom()], COUNTS, name=name, dataset_provenance={"sample_data": "ours"}
    )
    text = {"GLM": "1110", "Flash": "1f00", "MoM": "1111"}
    return finished_run(store, journal, plan, from_text(text, headers=DIRECT, lab=True))


@pytest.mark.parametrize("width", [60, 200])
def test_a_report_on_a_terminal_shows_whole_figures(store: Store, journal: Journal, width: int) -> None:
    out = StringIO()
    print_report(build_report(store, journal, run(store, journal)), Console(file=out, width=width))
    text = out.getvalue()
    for part in (
        "LAB",
        "SAMPLE DATA",
        "83.3 %",
        "[43.6, 97.0]",
        "5/6",
        "█",
        "≥ $0.0004160",
        "What this does not show",
    ):
        assert part in text, part
    assert "MoM chose Flash 6 (100 %)" in text
    assert "Flash: 2 × stream_truncated" in text
    assert "…" not in text


def test_a_comparison_on_a_terminal(store: Store, journal: Journal) -> None:
    run_id = run(store, journal)
    out = StringIO()
    print_comparison(compare_runs(store, journal, run_id), Console(file=out, width=120))
    text = out.getvalue()
    assert "Baseline GLM" in text
    assert "45.8 %" in text
    assert (
        "MoM: no difference in quality shown (the interval spans zero); 45.8 % cheaper on subject calls."
        in text
    )


def test_a_reading_tells_when_only_the_sharper_interval_excludes_zero(store: Store, journal: Journal) -> None:
    plan = frozen_plan([single("Flash"), mom()], {"mmlu-pro": 60})
    text = {"Flash": "1" * 60, "MoM": "0" * 10 + "1" * 50}
    run_id = finished_run(store, journal, plan, from_text(text, headers=DIRECT))
    told = reading(compare_runs(store, journal, run_id)["comparisons"][0])
    assert "no difference in quality shown (the interval spans zero), though the asymptotic interval" in told
    assert "points to worse" in told


def test_markdown_holds_the_tables_and_escapes_names(store: Store, journal: Journal) -> None:
    run_id = run(store, journal, name="a | b <script> *c*")
    report = build_report(store, journal, run_id)
    text = report_markdown(report)
    assert "a \\| b \\<script\\> \\*c\\*" in text
    assert "| MoM | mom | 100.0 % |" in text
    assert "| mmlu-pro | GLM | 75.0 % |" in text
    assert "**Lab run**" in text
    assert "| MoM | 100.0 % | – |" in scorecard_table(build_scorecard(report))
    assert "| MoM |" in comparison_markdown(compare_runs(store, journal, run_id))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (None, "unknown"),
        ("0", "$0"),
        ("0.08774285", "$0.08774"),
        ("0.000000104", "$0.0000001040"),
        ("12.3", "$12.30"),
        ("1234.567", "$1,234.57"),
    ],
)
def test_money(text: str | None, shown: str) -> None:
    assert numbers.usd(text) == shown


def test_bars_fill_in_eighths() -> None:
    assert numbers.bar(0) == " " * 10
    assert numbers.bar(1) == "█" * 10
    assert numbers.bar(0.5625) == "█████▋    "
    assert numbers.bar(None) == " " * 10


def test_shares_sum_the_rest() -> None:
    assert numbers.shares({"a": 6, "b": 3, "c": 1}, most=2) == "a 6 (60 %), b 3 (30 %), others 1"
