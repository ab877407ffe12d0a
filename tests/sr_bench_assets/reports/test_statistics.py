"""Statistics beyond the vectors: against independent calculations, and properties over random input."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sr_bench_assets.reports.statistics import (
    Candidate,
    PairedStratum,
    Stratum,
    hoeffding,
    mcnemar_exact,
    percentile,
    renormalised,
    saving_percent,
    strongest,
    weighted_accuracy,
    wilson,
    wins_losses_ties,
)

counts = st.integers(0, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
prices = st.decimals(0, 100, places=8)


@given(counts)
def test_wilson_holds_the_observed_share_and_agrees_with_scipy(pair: tuple[int, int]) -> None:
    from scipy.stats import binomtest

    successes, n = pair
    interval = wilson(successes, n)
    if n == 0:
        assert interval is None
        return
    assert interval is not None
    expected = binomtest(successes, n).proportion_ci(0.95, method="wilson")
    assert interval == pytest.approx((expected.low, expected.high), abs=1e-9)
    assert 0 <= interval[0] <= successes / n <= interval[1] <= 1


def test_wilson_refuses_more_successes_than_cases() -> None:
    with pytest.raises(ValueError):
        wilson(5, 4)


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60),
    st.lists(st.integers(0, 100), min_size=1, max_size=5),
)
def test_percentiles_agree_with_numpy_and_rise(values: list[float], percents: list[int]) -> None:
    import numpy as np

    found = percentile(values, sorted(percents))
    assert found == pytest.approx(list(np.percentile(values, sorted(percents))), rel=1e-9, abs=1e-6)
    known = [value for value in found if value is not None]
    assert known == sorted(known)
    assert min(values) <= known[0]
    assert known[-1] <= max(values)


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_the_binomial_tail(wins: int, losses: int) -> None:
    n, low = wins + losses, min(wins, losses)
    tail = sum(comb(n, k) for k in range(low + 1))
    assert mcnemar_exact(wins, losses) == min(Fraction(1), Fraction(2 * tail, 2**n))
    assert mcnemar_exact(wins, losses) == mcnemar_exact(losses, wins)


def test_mcnemar_of_many_pairs_is_fast_and_small() -> None:
    assert 0 < mcnemar_exact(1000, 1600) < Fraction(1, 10**6)


@given(st.lists(st.tuples(st.booleans(), st.booleans())))
def test_wins_losses_and_ties_cover_every_case(pairs: list[tuple[bool, bool]]) -> None:
    candidate, baseline = [c for c, _ in pairs], [b for _, b in pairs]
    found = wins_losses_ties(candidate, baseline)
    assert found.wins + found.losses + found.ties == len(pairs)
    assert found.wins - found.losses == sum(candidate) - sum(baseline)


def test_unpaired_outcomes_are_refused() -> None:
    with pytest.raises(ValueError):
        wins_losses_ties([True], [True, False])


@given(st.integers(1, 400), st.data())
def test_hoeffding_is_symmetric_and_never_a_point(n: int, data: st.DataObject) -> None:
    total = data.draw(st.integers(-n, n))
    ours = hoeffding([PairedStratum("x", Fraction(1), n, Fraction(total))])
    mirrored = hoeffding([PairedStratum("x", Fraction(1), n, Fraction(-total))])
    assert (ours.low, ours.high) == pytest.approx((-mirrored.high, -mirrored.low))
    assert -1 <= ours.low <= ours.difference <= ours.high <= 1
    assert ours.high > ours.low


def test_weights_must_sum_to_one() -> None:
    with pytest.raises(ValueError, match="sum to 1"):
        weighted_accuracy([Stratum("x", Fraction(1, 2), 3, 1)])
    with pytest.raises(ValueError, match="no cases"):
        weighted_accuracy([Stratum("x", Fraction(1), 0, 0)])


def test_weights_of_a_subset_are_scaled_and_zero_weights_are_equal() -> None:
    nine = {"mmlu-pro": Fraction(1, 10), "gpqa-diamond": Fraction(3, 20)}
    assert renormalised(nine) == {"mmlu-pro": Fraction(2, 5), "gpqa-diamond": Fraction(3, 5)}
    assert renormalised({"mine": Fraction(0), "yours": Fraction(0)}) == {
        "mine": Fraction(1, 2),
        "yours": Fraction(1, 2),
    }


@given(st.lists(st.tuples(st.integers(0, 3), st.none() | prices), min_size=1, max_size=8))
def test_the_strongest_is_one_of_the_best_and_the_cheapest_known(
    rows: list[tuple[int, Decimal | None]],
) -> None:
    candidates = [
        Candidate(f"m{number}", cost, (Stratum("x", Fraction(1), 3, correct),))
        for number, (correct, cost) in enumerate(rows)
    ]
    found = strongest(candidates)
    best = max(correct for correct, _ in rows)
    tied = [c for c, (correct, _) in zip(candidates, rows, strict=True) if correct == best]
    assert list(found.tied) == sorted(c.id for c in tied)
    known = [c.cost_usd for c in tied if c.cost_usd is not None]
    selected = next(c for c in tied if c.id == found.selected)
    assert selected.cost_usd == (min(known) if known else None)
    assert (found.savings_basis == "known") == (len(known) == len(tied))


@given(prices, prices)
def test_savings_are_exact_before_rounding(baseline: Decimal, candidate: Decimal) -> None:
    found = saving_percent(baseline, candidate)
    if baseline == 0:
        assert found is None
    else:
        assert found == float(100 - 100 * Fraction(candidate) / Fraction(baseline))
