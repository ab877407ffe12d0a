"""The diagnostic intervals of paired differences against independent calculations."""

from __future__ import annotations

from fractions import Fraction
from math import log, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sr_bench_assets.reports.paired_intervals import (
    PairCounts,
    bootstrap_interval,
    paired_score_interval,
    tango_interval,
)
from sr_bench_assets.reports.statistics import Z95

pairs = st.integers(1, 200).flatmap(
    lambda n: st.integers(0, n).flatmap(
        lambda wins: st.tuples(st.just(wins), st.integers(0, n - wins), st.just(n))
    )
)


def score_by_search(wins: int, losses: int, n: int, delta: float) -> float:
    """Tango's statistic with the restricted maximum likelihood found by ternary search."""
    low, high = max(0.0, -delta), (1 - delta) / 2

    def likelihood(loss: float) -> float:
        parts = ((wins, loss + delta), (losses, loss), (n - wins - losses, 1 - 2 * loss - delta))
        return sum(count * (log(p) if p > 0 else -1e9) for count, p in parts if count)

    for _ in range(200):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        low, high = (a, high) if likelihood(a) < likelihood(b) else (low, b)
    loss = (low + high) / 2
    return (wins - losses - n * delta) / sqrt(n * (2 * loss + delta * (1 - delta)))


@pytest.mark.parametrize(
    ("wins", "losses", "n"), [(9, 17, 136), (1, 14, 136), (12, 8, 50), (3, 1, 44), (0, 4, 20)]
)
def test_score_interval_ends_are_where_the_score_is_the_quantile(wins: int, losses: int, n: int) -> None:
    low, high = tango_interval(wins, losses, n)
    assert score_by_search(wins, losses, n, low) == pytest.approx(Z95, abs=1e-4)
    assert score_by_search(wins, losses, n, high) == pytest.approx(-Z95, abs=1e-4)


@given(pairs)
def test_score_interval_holds_the_difference_and_mirrors(counts: tuple[int, int, int]) -> None:
    wins, losses, n = counts
    low, high = tango_interval(wins, losses, n)
    assert -1 <= low <= (wins - losses) / n <= high <= 1
    assert high > low
    assert tango_interval(losses, wins, n) == pytest.approx((-high, -low), abs=1e-9)


def test_score_interval_of_ties_only_is_no_point() -> None:
    low, high = paired_score_interval([PairCounts("x", Fraction(1), 25, 0, 0)])
    assert (low, high) == pytest.approx((-(Z95**2) / (25 + Z95**2), Z95**2 / (25 + Z95**2)))


def test_one_benchmark_with_all_the_weight_keeps_its_interval() -> None:
    assert paired_score_interval([PairCounts("x", Fraction(1), 136, 9, 17)]) == pytest.approx(
        tango_interval(9, 17, 136)
    )


def test_bootstrap_is_the_same_for_the_same_seed_and_degenerates_on_ties() -> None:
    strata = [PairCounts("x", Fraction(2, 5), 100, 9, 17), PairCounts("y", Fraction(3, 5), 40, 4, 1)]
    assert bootstrap_interval(strata, seed=7) == bootstrap_interval(strata, seed=7)
    assert bootstrap_interval([PairCounts("x", Fraction(1), 25, 0, 0)], seed=7) == (0.0, 0.0)


def test_bootstrap_agrees_with_resampling_the_pairs() -> None:
    import numpy as np

    differences = np.array([1] * 30 + [-1] * 50 + [0] * 120)
    rng = np.random.default_rng(11)
    means = rng.choice(differences, size=(10_000, differences.size)).mean(axis=1)
    expected = np.percentile(means, [2.5, 97.5])
    found = bootstrap_interval([PairCounts("x", Fraction(1), 200, 30, 50)], seed=3)
    assert found == pytest.approx(tuple(expected), abs=0.011)
