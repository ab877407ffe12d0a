"""Comparisons of real journaled runs: choice of the baseline, savings, refusals, verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from resources.errors import Incomplete, NotFound, SrBenchError
from resources.journal.connection import Journal
from resources.store import Store
from sr_bench_assets.plans.manifest import FrozenPlan
from sr_bench_assets.reports.comparison import compare_runs
from sr_bench_assets.reports.comparison_csv import comparison_csv
from tests.finished_runs import finished_run, from_text, frozen_plan, mom, single

DIRECT = {
    "x-vsr-selected-model": "Flash",
    "x-vsr-selected-decision": "cheap",
    "x-vsr-inference-call-count": "1",
}
SINGLES = [single("GLM"), single("Flash")]
ROUTER = [mom()]


def run_of(store: Store, journal: Journal, plan: FrozenPlan, text: Mapping[str, str], **members: Any) -> str:
    return finished_run(store, journal, plan, from_text(text, headers=DIRECT), **members)


def test_a_router_against_the_strongest_single(store: Store, journal: Journal) -> None:
    baseline = run_of(store, journal, frozen_plan(SINGLES), {"GLM": "1110", "Flash": "1000"})
    candidate = run_of(store, journal, frozen_plan(ROUTER), {"MoM": "0111"})
    found = compare_runs(store, journal, baseline, [candidate])
    assert found["baseline_run_id"] == baseline
    assert found["baseline_target_id"] == "GLM"
    assert found["tied_best"] == ["GLM"]
    assert found["pool_oracle_quality"] == 0.75
    (row,) = found["comparisons"]
    assert (row["run_id"], row["target_id"], row["paired_cases"]) == (candidate, "MoM", 4)
    assert (row["wins"], row["losses"], row["ties"]) == (1, 1, 2)
    assert row["quality_delta"] == 0
    assert row["quality_delta_ci95"] == [-1.0, 1.0]
    assert row["quality_delta_ci95_method"].startswith("stratified Hoeffding")
    assert row["quality_reading"] == "no difference shown"
    # GLM 120 + 72, Flash 65 + 39 micro-dollars a case
    assert row["subject_cost_saving_percent"] == pytest.approx(100 * (1 - 104 / 192))
    assert row["total_cost_saving_percent"] == row["subject_cost_saving_percent"]
    assert row["cache_neutral_cost_saving_percent"] == pytest.approx(100 * (1 - 104 / 192))
    assert row["verdict"] is None
    assert "margin" in row["verdict_reason"]
    assert row["benchmarks"][0]["mcnemar_p"] == 1.0


def test_a_run_compares_its_own_router_without_a_candidate(store: Store, journal: Journal) -> None:
    run_id = run_of(
        store, journal, frozen_plan([*SINGLES, *ROUTER]), {"GLM": "1110", "Flash": "1000", "MoM": "1111"}
    )
    found = compare_runs(store, journal, run_id)
    assert [row["target_id"] for row in found["comparisons"]] == ["MoM"]
    assert found == compare_runs(store, journal, run_id, [run_id])


def test_ties_go_to_the_cheapest_and_one_unknown_cost_makes_savings_unknown(
    store: Store, journal: Journal
) -> None:
    baseline = run_of(store, journal, frozen_plan(SINGLES), {"GLM": "1100", "Flash": "1100"})
    candidate = run_of(store, journal, frozen_plan(ROUTER), {"MoM": "1100"})
    found = compare_runs(store, journal, baseline, [candidate])
    assert found["tied_best"] == ["Flash", "GLM"]
    assert found["baseline_target_id"] == "Flash"
    assert found["comparisons"][0]["subject_cost_saving_percent"] == 0

    free = [single("GLM", prices=None), single("Flash")]
    plan = frozen_plan(free, cost_policy="capability_only")
    baseline = run_of(store, journal, plan, {"GLM": "1100", "Flash": "1100"})
    found = compare_runs(store, journal, baseline, [candidate])
    assert found["savings_basis"] == "unknown"
    assert found["baseline_target_id"] == "Flash"
    assert found["baseline_cost_usd"] is None
    row = found["comparisons"][0]
    for name in ("subject", "total", "cache_neutral"):
        key = f"{name}_cost_saving_percent"
        assert row[key] is None
        assert row[f"{key}_reason"]


def test_a_named_single_can_be_the_baseline(store: Store, journal: Journal) -> None:
    baseline = run_of(store, journal, frozen_plan(SINGLES), {"GLM": "1110", "Flash": "1000"})
    candidate = run_of(store, journal, frozen_plan(ROUTER), {"MoM": "1100"})
    found = compare_runs(store, journal, baseline, [candidate], baseline_target="Flash")
    assert found["baseline_target_id"] == "Flash"
    assert found["comparisons"][0]["quality_delta"] == 0.25
    with pytest.raises(NotFound, match="nobody"):
        compare_runs(store, journal, baseline, [candidate], baseline_target="nobody")


MISMATCHES = {
    "profile": {"profile": "smoke"},
    "seed": {"seed": 7},
    "dataset_split": {"dataset_split": "holdout"},
    "sampling.temperature": {"sampling": {"temperature": 0.7}},
    "sampling.max_tokens": {"sampling": {"max_tokens": 100}},
    "limits.total_timeout_s": {"limits": {"total_timeout_s": 99}},
    "limits.max_output_tokens": {"limits": {"max_output_tokens": 5000}},
    "benchmark_options.mmlu-pro": {"benchmark_options": {"mmlu-pro": {"shots": 5}}},
    "auxiliary_targets.judge.model": {"auxiliary_targets": {"judge": single("judge", "GLM")}},
    "prices.Flash": {
        "targets": [
            mom(prices={"Flash": {"input": "9", "cached_input": "1", "cache_write": "1", "output": "1"}})
        ]
    },
}


@pytest.mark.parametrize("field", MISMATCHES)
def test_a_mismatch_is_named_and_refused(store: Store, journal: Journal, field: str) -> None:
    judged: dict[str, Any] = {"auxiliary_targets": {"judge": single("judge", "Flash")}}
    baseline = run_of(store, journal, frozen_plan(SINGLES, **judged), {"GLM": "1110", "Flash": "1000"})
    changed: dict[str, Any] = {"targets": ROUTER, **judged, **MISMATCHES[field]}
    candidate = run_of(store, journal, frozen_plan(changed.pop("targets"), **changed), {"MoM": "1100"})
    with pytest.raises(SrBenchError) as caught:
        compare_runs(store, journal, baseline, [candidate])
    assert caught.value.code == "mismatch"
    assert caught.value.field == field
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("counts", "field"), [({"mmlu-pro": 5}, "benchmarks.mmlu-pro.case_count"), ({"hle": 4}, "benchmarks")]
)
def test_other_cases_are_refused(store: Store, journal: Journal, counts: dict[str, int], field: str) -> None:
    baseline = run_of(store, journal, frozen_plan(SINGLES), {"GLM": "1110", "Flash": "1000"})
    candidate = run_of(store, journal, frozen_plan(ROUTER, counts), {"MoM": "11001"})
    with pytest.raises(SrBenchError) as caught:
        compare_runs(store, journal, baseline, [candidate])
    assert caught.value.field == field


def test_prices_written_otherwise_are_the_same_prices(store: Store, journal: Journal) -> None:
    baseline = run_of(store, journal, frozen_plan(SINGLES), {"GLM": "1110", "Flash": "1000"})
    same = {"Flash": {"input": "0.650", "cached_input": "0.065", "cache_write": "0.8125", "output": "1.950"}}
    candidate = run_of(store, journal, frozen_plan([mom(prices=same)]), {"MoM": "1100"})
    assert compare_runs(store, journal, baseline, [candidate])["comparisons"]


def test_incomplete_and_preview_runs_are_refused(store: Store, journal: Journal) -> None:
    baseline = run_of(store, journal, frozen_plan(SINGLES), {"GLM": "1110", "Flash": "1000"})
    partial = run_of(store, journal, frozen_plan(ROUTER), {"MoM": "11.."}, status="partial")
    with pytest.raises(Incomplete) as caught:
        compare_runs(store, journal, baseline, [partial])
    assert caught.value.exit_code == 1
    preview = run_of(store, journal, frozen_plan(ROUTER, mode="preview"), {"MoM": "1111"})
    with pytest.raises(SrBenchError, match="preview"):
        compare_runs(store, journal, baseline, [preview])


@pytest.mark.parametrize(
    ("split", "margin", "verdict", "claimable"),
    [
        ("holdout", "0.3", "non_inferior", True),
        ("dev", "0.3", "non_inferior", False),
        ("holdout", "0.05", "not_shown", True),
    ],
)
def test_the_registered_margin_gives_the_verdict(
    store: Store, journal: Journal, split: str, margin: str, verdict: str, claimable: bool
) -> None:
    members = {"profile": "standard", "dataset_split": split}
    counts = {"mmlu-pro": 120}
    right = "1" * 120
    baseline = run_of(store, journal, frozen_plan([single("Flash")], counts, **members), {"Flash": right})
    plan = frozen_plan(ROUTER, counts, non_inferiority={"margin": margin}, **members)
    row = compare_runs(store, journal, baseline, [run_of(store, journal, plan, {"MoM": right})])[
        "comparisons"
    ][0]
    assert row["verdict"] == verdict
    assert row["claimable"] is claimable
    assert ("claimable_reason" in row) is not claimable


def test_a_clear_win_is_better_and_csv_holds_the_row(store: Store, journal: Journal) -> None:
    counts = {"mmlu-pro": 60}
    baseline = run_of(store, journal, frozen_plan([single("Flash")], counts), {"Flash": "0" * 60})
    candidate = run_of(store, journal, frozen_plan(ROUTER, counts), {"MoM": "1" * 60})
    found = compare_runs(store, journal, baseline, [candidate])
    row = found["comparisons"][0]
    assert row["quality_reading"] == "better"
    assert row["bootstrap_ci95"] == [1.0, 1.0]
    head, line = comparison_csv(found).splitlines()
    values = dict(zip(head.split(","), line.split(","), strict=True))
    assert values["wins"] == "60"
    assert float(values["quality_delta_ci95_low"]) == row["quality_delta_ci95"][0]
    assert values["verdict"] == ""
