"""Statistics of an evaluation: pure functions over counts, exact fractions wherever the result is rational.

Quality differences are candidate minus baseline, per case in [-1, 1]. A *stratum* is one benchmark with its
weight.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import log, sqrt
from typing import Literal

Z95 = 1.959963984540054
"""Normal quantile of the two-sided 95 % level."""


@dataclass(frozen=True)
class Stratum:
    """Outcome of one target on one benchmark: `correct` of `n` planned cases, at `weight` in the
    aggregate."""

    id: str
    weight: Fraction
    n: int
    correct: int


@dataclass(frozen=True)
class PairedStratum:
    """Paired outcomes of two targets on one benchmark."""

    id: str
    weight: Fraction
    n: int
    sum_difference: Fraction
    """Sum over the cases of candidate minus baseline."""


@dataclass(frozen=True)
class Candidate:
    """A single model that may be the strongest; `cost_usd` is its complete subject cost, None when
    unknown."""

    id: str
    cost_usd: Decimal | None
    strata: tuple[Stratum, ...]


@dataclass(frozen=True)
class Strongest:
    """The strongest observed single: `tied` lists every id that reaches `quality`."""

    quality: Fraction
    tied: tuple[str, ...]
    selected: str
    baseline_cost_usd: Decimal | None
    savings_basis: Literal["known", "unknown"]


@dataclass(frozen=True)
class DifferenceInterval:
    """An exact weighted difference and the interval around it."""

    difference: Fraction
    radius: float
    low: float
    high: float


@dataclass(frozen=True)
class WinsLossesTies:
    wins: int
    losses: int
    ties: int


def wilson(successes: int, n: int) -> tuple[float, float] | None:
    """Two-sided 95 % Wilson score interval of `successes` of `n`; None for n = 0 (Wilson 1927)."""
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n}")
    if n == 0:
        return None
    z2 = Z95 * Z95
    centre = successes + z2 / 2
    spread = Z95 * sqrt(successes * (n - successes) / n + z2 / 4)
    # The ends are exactly 0 and 1 at the extremes; binary arithmetic alone would miss them by an ulp.
    low = 0.0 if successes == 0 else max(0.0, (centre - spread) / (n + z2))
    high = 1.0 if successes == n else min(1.0, (centre + spread) / (n + z2))
    return low, high


def renormalised(weights: Mapping[str, Fraction]) -> dict[str, Fraction]:
    """The weights of a subset scaled to sum 1; equal weights where all of them are 0 (plug-ins outside the
    nine)."""
    total = sum(weights.values(), Fraction(0))
    if total == 0:
        return {key: Fraction(1, len(weights)) for key in weights}
    return {key: weight / total for key, weight in weights.items()}


def weighted_accuracy(strata: Sequence[Stratum]) -> Fraction:
    """Exact sum of weight × correct / n. The weights must sum to 1 and every n must be positive."""
    _check_weights(strata)
    return sum((s.weight * Fraction(s.correct, s.n) for s in strata), Fraction(0))


def strongest(candidates: Sequence[Candidate]) -> Strongest:
    """The best single by exact weighted accuracy.

    Ties go to the lowest known cost (unknown costs last), then to the lowest id by code point.

    One tied best with unknown cost makes the basis of savings unknown: the cheaper of two equals would be a
    guess.
    """
    if not candidates:
        raise ValueError("no candidates")
    quality = {candidate.id: weighted_accuracy(candidate.strata) for candidate in candidates}
    best = max(quality.values())
    tied = sorted((c for c in candidates if quality[c.id] == best), key=lambda c: c.id)
    selected = min(tied, key=lambda c: (c.cost_usd is None, c.cost_usd or Decimal(0), c.id))
    known = all(c.cost_usd is not None for c in tied)
    return Strongest(
        quality=best,
        tied=tuple(c.id for c in tied),
        selected=selected.id,
        baseline_cost_usd=selected.cost_usd if known else None,
        savings_basis="known" if known else "unknown",
    )


def saving_percent(baseline_usd: Decimal | None, candidate_usd: Decimal | None) -> float | None:
    """100 × (1 − candidate / baseline); None for a zero or unknown baseline or an unknown candidate."""
    if baseline_usd is None or candidate_usd is None or baseline_usd == 0:
        return None
    return float(100 * (1 - Fraction(candidate_usd) / Fraction(baseline_usd)))


def weighted_difference(strata: Sequence[PairedStratum]) -> Fraction:
    """Exact sum of weight × sum_difference / n."""
    _check_weights(strata)
    return sum((s.weight * s.sum_difference / s.n for s in strata), Fraction(0))


def hoeffding(strata: Sequence[PairedStratum], alpha: float = 0.05) -> DifferenceInterval:
    """Two-sided stratified Hoeffding interval of the weighted difference, clipped to [-1, 1].

    Differences are independent and in [-1, 1] (width 2), so P(|error| ≥ t) ≤ 2 exp(−2 t² / Σ n (2 w / n)²),
    which solved for t gives radius = sqrt(2 ln(2 / alpha) Σ w² / n) (Hoeffding 1963, theorem 2).
    """
    difference = weighted_difference(strata)
    radius = sqrt(2 * log(2 / alpha) * float(sum((s.weight**2 / s.n for s in strata), Fraction(0))))
    return DifferenceInterval(
        difference, radius, max(-1.0, float(difference) - radius), min(1.0, float(difference) + radius)
    )


def percentile(values: Iterable[float], percents: Sequence[float]) -> list[float | None]:
    """Percentiles by linear interpolation at (count − 1) × percent / 100 of the sorted values; None without
    values."""
    ordered = sorted(values)
    if not ordered:
        return [None] * len(percents)
    results: list[float | None] = []
    for percent in percents:
        if not 0 <= percent <= 100:
            raise ValueError(f"percent {percent} is outside 0 to 100")
        position = (len(ordered) - 1) * percent / 100
        below = int(position)
        above = min(below + 1, len(ordered) - 1)
        share = position - below
        # Not a + (b − a) × share: this form is exact where both neighbours are equal and monotone in
        # `percent`.
        low, high = ordered[below], ordered[above]
        results.append(float(low if low == high else low * (1 - share) + high * share))
    return results


def wins_losses_ties(candidate: Sequence[bool], baseline: Sequence[bool]) -> WinsLossesTies:
    """Paired outcomes in the same case order: a win is candidate right and baseline wrong (or failed)."""
    if len(candidate) != len(baseline):
        raise ValueError(f"{len(candidate)} candidate outcomes against {len(baseline)} baseline outcomes")
    wins = sum(1 for c, b in zip(candidate, baseline, strict=True) if c and not b)
    losses = sum(1 for c, b in zip(candidate, baseline, strict=True) if b and not c)
    return WinsLossesTies(wins, losses, len(candidate) - wins - losses)


def mcnemar_exact(wins: int, losses: int) -> Fraction:
    """Exact two-sided McNemar p-value: min(1, 2 P(X ≤ min(wins, losses))), X ~ Binomial(wins + losses,
    1/2)."""
    n = wins + losses
    term = tail = 1
    for k in range(min(wins, losses)):
        term = term * (n - k) // (k + 1)
        tail += term
    return min(Fraction(1), Fraction(2 * tail, 2**n))


def non_inferior(interval_low: Decimal | float | None, margin: Decimal) -> bool | None:
    """True only if the interval's lower end lies above −margin, compared exactly; None without an
    interval."""
    if interval_low is None:
        return None
    return Fraction(interval_low) > -Fraction(margin)


def _check_weights(strata: Sequence[Stratum] | Sequence[PairedStratum]) -> None:
    if sum((s.weight for s in strata), Fraction(0)) != 1:
        raise ValueError("the weights of the strata do not sum to 1")
    for s in strata:
        if s.n <= 0:
            raise ValueError(f"stratum {s.id} has no cases")
