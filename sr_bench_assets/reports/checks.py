"""Checks of a benchmark's report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dagster import AssetCheckResult, AssetCheckSeverity, AssetCheckSpec

_ASSET = "benchmark_report"
_PARTS = ("scored", "ungraded", "failed", "ambiguous", "pending")
CHECK_SPECS = [
    AssetCheckSpec(
        "denominator_adds_up",
        asset=_ASSET,
        blocking=True,
        description="For every target, scored, ungraded, failed, ambiguous and pending cells add up to the plan.",
    ),
    AssetCheckSpec(
        "costs_are_known",
        asset=_ASSET,
        description="Every subject cost is known (a warning: unknown costs support no savings claim).",
    ),
    AssetCheckSpec(
        "real_models",
        asset=_ASSET,
        description="No target is a lab gateway (a warning: lab figures say nothing about real models).",
    ),
]


def check_report(report: Mapping[str, Any]) -> list[AssetCheckResult]:
    """The results of `CHECK_SPECS` for one report document."""
    rows = report["benchmarks"]
    wrong = [row["target_id"] for row in rows if row["planned"] != sum(row[part] for part in _PARTS)]
    unknown = [row["target_id"] for row in rows if row["cost_usd"] is None]
    return [
        AssetCheckResult(
            check_name="denominator_adds_up", passed=not wrong, metadata={"wrong": ", ".join(wrong) or "none"}
        ),
        AssetCheckResult(
            check_name="costs_are_known",
            passed=not unknown,
            severity=AssetCheckSeverity.WARN,
            metadata={"unknown": ", ".join(unknown) or "none"},
        ),
        AssetCheckResult(
            check_name="real_models",
            passed=not report["lab"],
            severity=AssetCheckSeverity.WARN,
            metadata={"lab": report["lab"]},
        ),
    ]
