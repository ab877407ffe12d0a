"""One evaluation with every fault: `show`, `report`, `compare` and the sealed tables tell the same figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from resources.journal.connection import open_journal
from resources.store import Store
from sr_bench_assets.results.facts import load_calls, load_results
from tests.cli.evaluation import Bench, routers, singles
from tests.servers.lab import RunningLab, lab_config, lab_in_process

CASES = 60
KINDS = [
    "rate_limit",
    "unavailable",
    "http_error",
    "reset",
    "cut",
    "error_event",
    "invalid_json",
    "repeat",
    "flood",
    "stall",
    "heartbeat",
    "slow",
]
LIMITS = {"concurrency": 4, "idle_timeout_s": 1, "max_consecutive_failures": 50}


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("figures"))


@pytest.fixture(scope="module")
def lab(bench: Bench) -> Iterator[RunningLab]:
    config = lab_config()
    config["models"]["lab-small"]["faults"] = [
        {"kind": kind, "requests": [4 * number + 3], "seconds": 1.5, "retry_after_s": 0.2}
        for number, kind in enumerate(KINDS)
    ]
    config["routers"]["lab-router"]["faults"] = [
        {"kind": "wrong_config_hash", "every": 7},
        {"kind": "no_config_hash", "every": 11},
        {"kind": "cut", "every": 13},
    ]
    dataset = bench.dataset("standard", limit=CASES)
    with lab_in_process(bench.folder, config, datasets=[Path(dataset["path"])]) as running:
        yield running


@pytest.fixture(scope="module")
def runs(bench: Bench, lab: RunningLab) -> tuple[str, str]:
    """A run of two singles and the router, and one of the router alone."""
    dataset = bench.dataset("standard", limit=CASES)
    everyone, _ = bench.frozen("everyone", dataset, [*singles(lab), *routers(lab)], limits=LIMITS)
    alone, _ = bench.frozen("alone", dataset, routers(lab), limits=LIMITS)
    first, second = (bench.ok("run", "--manifest", str(file))["id"] for file in (everyone, alone))
    return first, second


@pytest.fixture(scope="module")
def tables(bench: Bench, runs: tuple[str, str]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows of the sealed results and calls of the first run."""
    store = Store.open(bench.store)
    journal = open_journal(store)
    found = [
        list(load(store, journal, runs[0], "mmlu-pro").iter_rows(named=True))
        for load in (load_results, load_calls)
    ]
    journal.close()
    return found[0], found[1]


def by_target(rows: list[dict[str, Any]], target: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["target_id"] == target]


@pytest.mark.parametrize("target", ["lab-small", "lab-large", "lab-router"])
def test_cells_costs_and_tokens_are_the_same_everywhere(
    bench: Bench, runs: tuple[str, str], tables: tuple[list[dict[str, Any]], ...], target: str
) -> None:
    shown = next(
        row for row in bench.ok("show", runs[0])["by_benchmark_and_target"] if row["target_id"] == target
    )
    reported = next(row for row in bench.ok("report", runs[0])["targets"] if row["id"] == target)
    results, calls = (by_target(rows, target) for rows in tables)
    statuses = Counter(row["status"] for row in results)

    assert len(results) == reported["planned"] == CASES
    assert statuses["completed"] == shown["completed"] == reported["scored"]
    assert statuses["failed"] == shown["failed"] == reported["failed"]
    assert sum(row["correct"] is True for row in results) == reported["correct"]
    assert reported["accuracy"] == reported["correct"] / CASES
    assert Counter(row["failure"] for row in results if row["failure"]) == reported["failures"]

    assert len(calls) == shown["calls"] == reported["calls"]["subject"]
    assert sum(row["outcome"] == "refused" for row in calls) == reported["calls"]["refused"]
    # Refused requests cost nothing, and stand in no sum of costs.
    known = [Decimal(row["cost_usd"]) for row in calls if row["cost_usd"] is not None]
    unknown = sum(row["cost_usd"] is None and row["outcome"] != "refused" for row in calls)
    assert sum(known, Decimal(0)) == Decimal(shown["known_cost_usd"]) == Decimal(reported["known_cost_usd"])
    assert unknown == shown["calls_of_unknown_cost"]
    if unknown:
        assert reported["cost_usd"] is None
        assert f"{unknown} of {CASES}" in reported["cost_usd_reason"]
    else:
        assert reported["cost_usd"] == reported["known_cost_usd"]
    for bucket in ("input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens"):
        counted = sum(row[bucket] or 0 for row in calls)
        assert counted == (reported["tokens"] or reported["known_tokens"])[bucket]


def test_nothing_had_to_be_corrected_afterwards(bench: Bench, runs: tuple[str, str]) -> None:
    for run in runs:
        found = bench.ok("show", run)
        reconciled = found["usage_reconciliation"]
        assert reconciled["changed"] == reconciled["corrected"] == 0
        assert Decimal(reconciled["known_cost_usd"]) == Decimal(found["known_cost_usd"])
        assert bench.ok("rebuild", run)["different"] == []


def test_a_comparison_tells_what_both_reports_tell(bench: Bench, runs: tuple[str, str]) -> None:
    first, second = ({row["id"]: row for row in bench.ok("report", run)["targets"]} for run in runs)
    (row,) = bench.ok("compare", *runs)["comparisons"]
    baseline, candidate = first[row["baseline_target_id"]], second["lab-router"]
    assert row["quality"] == candidate["accuracy"]
    assert row["quality_delta"] == pytest.approx(candidate["accuracy"] - baseline["accuracy"])
    assert row["wins"] - row["losses"] == candidate["correct"] - baseline["correct"]
    assert row["cost_usd"] == candidate["cost_usd"]
    assert row["cost_usd_reason"] == candidate["cost_usd_reason"]


def test_nothing_was_sent_twice(lab: RunningLab, runs: tuple[str, str]) -> None:
    del runs
    stats = lab.stats()
    assert stats["resends"] == CASES  # the second run asks the router what the first one asked
    assert stats["refused"] == 2
