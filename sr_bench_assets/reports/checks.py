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
SCORECARD_CHECK_SPECS = [
    AssetCheckSpec(
        "every_benchmark_is_complete",
        asset="scorecard",
        description="Every target has an end for each planned case of each benchmark (a warning: open cases count as "
        "not correct).",
    ),
    AssetCheckSpec(
        "real_models",
        asset="scorecard",
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
        _real_models(report),
    ]


def check_scorecard(card: Mapping[str, Any]) -> list[AssetCheckResult]:
    """The results of `SCORECARD_CHECK_SPECS` for one scorecard document."""
    incomplete = [target["id"] for target in card["targets"] if not target["complete"]]
    return [
        AssetCheckResult(
            check_name="every_benchmark_is_complete",
            passed=not incomplete,
            severity=AssetCheckSeverity.WARN,
            metadata={"incomplete": ", ".join(incomplete) or "none"},
        ),
        _real_models(card),
    ]


def _real_models(document: Mapping[str, Any]) -> AssetCheckResult:
    return AssetCheckResult(
        check_name="real_models",
        passed=not document["lab"],
        severity=AssetCheckSeverity.WARN,
        metadata={"lab": document["lab"]},
    )
