"""Diagnostic intervals of a paired quality difference: stratified bootstrap and asymptotic score interval.

Neither replaces the Hoeffding interval of `statistics.py` as the claim: the bootstrap degenerates to a point
when all pairs tie, the score interval holds only asymptotically.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

from sr_bench_assets.reports.statistics import Z95

BOOTSTRAP_RESAMPLES = 10_000


@dataclass(frozen=True)
class PairCounts:
    """Paired right/wrong outcomes on one benchmark."""

    id: str
    weight: Fraction
    n: int
    wins: int
    losses: int


def bootstrap_interval(
    strata: Sequence[PairCounts], *, seed: int, resamples: int = BOOTSTRAP_RESAMPLES
) -> tuple[float, float]:
    """95 % percentile interval of the weighted difference under stratified resampling of the pairs.

    A resample of n pairs with replacement depends only on how many wins, losses and ties it holds, which is
    multinomial; drawing those counts is the same bootstrap at a small part of the cost.
    """
    import numpy as np

    rng = np.random.default_rng(seed)
    total = np.zeros(resamples)
    for stratum in strata:
        n = stratum.n
        shares = [stratum.wins / n, stratum.losses / n, (n - stratum.wins - stratum.losses) / n]
        counts = rng.multinomial(n, shares, size=resamples)
        total += float(stratum.weight) * (counts[:, 0] - counts[:, 1]) / n
    low, high = np.percentile(total, [2.5, 97.5])
    # Rounded: sums of binary fractions would show a tie as 1e-17.
    return round(float(low), 12) + 0.0, round(float(high), 12) + 0.0


def tango_interval(wins: int, losses: int, n: int) -> tuple[float, float]:
    """95 % score interval of the difference of two paired proportions (Tango 1998, Statistics in Medicine
    17:891)."""
    difference = (wins - losses) / n
    low = -1.0 if losses == n else _solve(wins, losses, n, -1.0, difference, target=Z95)
    high = 1.0 if wins == n else _solve(wins, losses, n, difference, 1.0, target=-Z95)
    return low, high


def paired_score_interval(strata: Sequence[PairCounts]) -> tuple[float, float]:
    """Asymptotic 95 % interval of the weighted difference: Tango's interval per benchmark, combined by MOVER
    (Zou and Donner 2008): each end's distance is the root of the summed squares of the weighted distances."""
    difference = below = above = 0.0
    for stratum in strata:
        weight = float(stratum.weight)
        delta = (stratum.wins - stratum.losses) / stratum.n
        low, high = tango_interval(stratum.wins, stratum.losses, stratum.n)
        difference += weight * delta
        below += (weight * (delta - low)) ** 2
        above += (weight * (high - delta)) ** 2
    return max(-1.0, difference - sqrt(below)), min(1.0, difference + sqrt(above))


def _score(wins: int, losses: int, n: int, delta: float) -> float:
    """Tango's score statistic for the hypothesis that the difference is `delta`; falls as `delta` grows."""
    numerator = wins - losses - n * delta
    a = 2 * n
    b = -wins - losses + (2 * n - wins + losses) * delta
    c = -losses * delta * (1 - delta)
    # Restricted maximum likelihood of the probability of a loss.
    loss = (sqrt(max(0.0, b * b - 4 * a * c)) - b) / (2 * a)
    variance = n * (2 * loss + delta * (1 - delta))
    if variance <= 0:
        return 0.0 if numerator == 0 else float("inf") * numerator
    return numerator / sqrt(variance)


def _solve(wins: int, losses: int, n: int, low: float, high: float, *, target: float) -> float:
    """The `delta` in [low, high] where the score equals `target`, by bisection to machine precision."""
    for _ in range(80):
        middle = (low + high) / 2
        if _score(wins, losses, n, middle) > target:
            low = middle
        else:
            high = middle
    return (low + high) / 2
