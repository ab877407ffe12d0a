"""Checks of a partition's accounting."""

from __future__ import annotations

from dagster import AssetCheckResult, AssetCheckSeverity, AssetCheckSpec

from sr_bench_assets.usage.ledger import Ledger

_ASSET = "reconciled_usage"
CHECK_SPECS = [
    AssetCheckSpec(
        "every_call_is_accounted_for",
        asset=_ASSET,
        blocking=True,
        description="Verified, corrected, unknown and unspent calls add up to all calls.",
    ),
    AssetCheckSpec(
        "usage_is_known",
        asset=_ASSET,
        description="No call's usage is unknown (a warning: unknown usage makes costs unknown, never 0).",
    ),
]


def check_ledger(ledger: Ledger) -> list[AssetCheckResult]:
    """The results of `CHECK_SPECS` for one partition's ledger."""
    counts = ledger.counts
    settled = counts["verified"] + counts["corrected"] + counts["unknown"] + counts["without_spend"]
    return [
        AssetCheckResult(
            check_name="every_call_is_accounted_for",
            passed=settled == counts["calls"],
            metadata={"calls": counts["calls"], "accounted": settled},
        ),
        AssetCheckResult(
            check_name="usage_is_known",
            passed=counts["unknown"] == 0,
            severity=AssetCheckSeverity.WARN,
            metadata={"unknown": counts["unknown"]},
        ),
    ]
