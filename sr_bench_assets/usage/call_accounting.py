"""What one call used and cost, as recorded live or as reconciled later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sr_bench_assets.usage.reconciliation import BUCKETS

Tokens = tuple[int, int, int, int]
"""Fresh input, cached input, cache write, output."""


@dataclass(frozen=True)
class CallAccounting:
    """Usage and cost of one call; None is unknown, with `cost_reason`."""

    tokens: Tokens | None
    cost_usd: Decimal | None
    cost_reason: str | None
    cache_neutral_cost_usd: Decimal | None


def recorded_accounting(row: Mapping[str, Any]) -> CallAccounting:
    """The accounting in a row of the journal's `calls` table.

    A call that is known to have spent nothing (refused, or never sent) used no tokens and cost 0.
    """
    if row["outcome"] in ("failed", "refused") and row["spent_pico"] == 0:
        return CallAccounting((0, 0, 0, 0), Decimal(0), None, Decimal(0))
    return CallAccounting(
        tokens=bucket_tuple(row),
        cost_usd=decimal_or_none(row["cost_usd"]),
        cost_reason=row["cost_reason"],
        cache_neutral_cost_usd=decimal_or_none(row["cache_neutral_cost_usd"]),
    )


def bucket_tuple(counts: Mapping[str, Any] | None) -> Tokens | None:
    """The four bucket counts by name as a tuple; None unless all four are known."""
    if counts is None:
        return None
    fresh, cached, write, output = (counts.get(name) for name in BUCKETS)
    if fresh is None or cached is None or write is None or output is None:
        return None
    return fresh, cached, write, output


def decimal_or_none(text: str | Decimal | None) -> Decimal | None:
    """An exact decimal from a money column."""
    return None if text is None else Decimal(text)
