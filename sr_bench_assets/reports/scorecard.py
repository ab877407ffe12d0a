"""The scorecard of a run: one line a target, its benchmarks side by side. Pure, from the run's report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SCORECARD_SCHEMA = "sr-bench-scorecard-1"
_TARGET_FIGURES = (
    "id",
    "kind",
    "planned",
    "correct",
    "failed",
    "pending",
    "complete",
    "accuracy",
    "accuracy_reason",
    "accuracy_ci95",
    "macro_accuracy",
    "macro_accuracy_reason",
    "macro_label",
    "score",
    "score_reason",
    "cost_usd",
    "cost_usd_reason",
    "total_cost_usd",
    "total_cost_usd_reason",
    "cache_neutral_cost_usd",
    "cache_neutral_cost_usd_reason",
    "latency_p50_s",
    "latency_p50_s_reason",
)
_BENCHMARK_FIGURES = (
    "planned",
    "correct",
    "failed",
    "pending",
    "accuracy",
    "accuracy_reason",
    "accuracy_ci95",
)


def build_scorecard(report: Mapping[str, Any]) -> dict[str, Any]:
    """The scorecard of a run's report (`report.build_report` without a partition); targets by descending
    macro."""
    rows = [_target(report, target) for target in report["targets"]]
    rows.sort(key=lambda row: (row["macro_accuracy"] is None, -(row["macro_accuracy"] or 0.0), row["id"]))
    return {
        "schema": SCORECARD_SCHEMA,
        "run_id": report["run_id"],
        "plan_sha256": report["plan_sha256"],
        "profile": report["profile"],
        "lab": report["lab"],
        **({"sample_data": report["sample_data"]} if "sample_data" in report else {}),
        "targets": rows,
    }


def _target(report: Mapping[str, Any], target: Mapping[str, Any]) -> dict[str, Any]:
    benchmarks = {
        row["benchmark"]: {key: row[key] for key in _BENCHMARK_FIGURES if key in row}
        for row in report["benchmarks"]
        if row["target_id"] == target["id"]
    }
    return {**{key: target[key] for key in _TARGET_FIGURES if key in target}, "benchmarks": benchmarks}
