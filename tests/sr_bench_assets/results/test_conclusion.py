"""The final status of a run."""

from __future__ import annotations

import pytest

from sr_bench_assets.results.conclusion import CellCounts, Stop, concluded


@pytest.mark.parametrize(
    ("counts", "stop", "status"),
    [
        (CellCounts(4, 3, 1, 0), None, "completed"),
        (CellCounts(4, 0, 4, 0), None, "failed"),
        (CellCounts(4, 2, 1, 0), None, "partial"),
        (CellCounts(4, 3, 0, 1), None, "partial"),
        (CellCounts(4, 2, 0, 0), Stop("budget_exhausted", "the budget"), "budget_exhausted"),
        (CellCounts(4, 4, 0, 0), Stop("budget_exhausted", "the budget"), "completed"),
        (CellCounts(4, 2, 2, 0), Stop("cancelled", "asked to"), "cancelled"),
        (CellCounts(4, 2, 2, 0), Stop("timed_out", "max_run_seconds"), "timed_out"),
        (CellCounts(4, 0, 0, 0), Stop("interrupted", "SIGTERM"), "interrupted"),
        (CellCounts(0, 0, 0, 0), None, "completed"),
    ],
)
def test_status(counts: CellCounts, stop: Stop | None, status: str) -> None:
    assert concluded(counts, stop)[0] == status


def test_a_partial_run_says_what_is_missing() -> None:
    _, reason = concluded(CellCounts(10, 5, 1, 2), None)
    assert reason == "2 of 10 cells were not dispatched; 2 of 10 cells are ambiguous: sent, end unknown"
