"""Sums of money that are either exact or unknown with a reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal, localcontext

_EXACT_DIGITS = 80


@dataclass(frozen=True)
class Amount:
    """`usd` is the exact total, None when any part is unknown; `known_usd` sums the known parts."""

    usd: Decimal | None
    known_usd: Decimal
    reason: str | None


def add_up(parts: Iterable[tuple[Decimal | None, str | None]], what: str) -> Amount:
    """Exact sum of (cost, reason when unknown) pairs; one unknown part makes the total unknown."""
    known = Decimal(0)
    count = 0
    unknown: Counter[str] = Counter()
    with localcontext(prec=_EXACT_DIGITS):
        for cost, reason in parts:
            count += 1
            if cost is None:
                unknown[reason or "not recorded"] += 1
            else:
                known += cost
    if not unknown:
        return Amount(known, known, None)
    causes = ", ".join(f"{reason} {n}" for reason, n in sorted(unknown.items()))
    return Amount(None, known, f"{sum(unknown.values())} of {count} {what} have no known cost ({causes})")


def total(amounts: Iterable[Amount]) -> Amount:
    """Sum of amounts; unknown, with all reasons, when any is."""
    parts = list(amounts)
    reasons = [part.reason for part in parts if part.reason]
    with localcontext(prec=_EXACT_DIGITS):
        known = sum((part.known_usd for part in parts), Decimal(0))
    return Amount(None if reasons else known, known, "; ".join(reasons) or None)
