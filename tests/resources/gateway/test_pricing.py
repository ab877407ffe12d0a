"""Exactness of money beyond the vectors."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from resources.gateway.pricing import ReservationBound, decimal_text, price_call, price_mom, to_pico
from resources.gateway.router import ChildCall
from resources.gateway.usage import Usage
from resources.targets import Price

counts = st.integers(0, 10**15)
rates = st.decimals(min_value=0, max_value=10**6, places=9)
price_lists = st.builds(Price, input=rates, cached_input=rates, cache_write=rates, output=rates)
usages = st.builds(lambda a, b, c, d: Usage("known", a, b, c, d), counts, counts, counts, counts)


@given(usages, price_lists)
def test_costs_equal_exact_fractions(usage: Usage, price: Price) -> None:
    cost = price_call("m", usage, {"m": price})
    tokens = (usage.input_tokens, usage.cached_input_tokens, usage.cache_write_tokens, usage.output_tokens)
    by_rate = zip(tokens, (price.input, price.cached_input, price.cache_write, price.output), strict=True)
    exact = sum((Fraction(count or 0) * Fraction(rate) / 10**6 for count, rate in by_rate), Fraction(0))
    assert cost.cost_usd is not None
    assert Fraction(cost.cost_usd) == exact
    assert Fraction(decimal_text(cost.cost_usd)) == exact
    pico = to_pico(cost.cost_usd)
    assert 0 <= Fraction(pico, 10**12) - exact < Fraction(1, 10**12)


@given(st.lists(usages, min_size=1, max_size=5), price_lists)
def test_a_receipt_costs_the_sum_of_its_children(children: list[Usage], price: Price) -> None:
    total = price_mom([ChildCall("m", usage) for usage in children], {"m": price}).total.cost_usd
    parts = [price_call("m", usage, {"m": price}).cost_usd for usage in children]
    assert total is not None
    assert Fraction(total) == sum((Fraction(part) for part in parts if part is not None), Fraction(0))


def test_a_receipt_without_calls_prices_nothing() -> None:
    assert price_mom([], {}).total.reason == "child_unknown"


@given(
    st.integers(0, 10**6),
    st.integers(1, 10**5),
    st.dictionaries(st.sampled_from("abc"), price_lists, min_size=1),
)
def test_a_reservation_covers_whatever_the_call_can_cost(
    size: int, cap: int, prices: dict[str, Price]
) -> None:
    bound = ReservationBound(prices, 1).pico(size, cap)
    for model in prices:
        for split in ((size, 0, 0), (0, size, 0), (0, 0, size)):
            cost = price_call(model, Usage("known", *split, cap), prices).cost_usd
            assert cost is not None
            assert to_pico(cost) <= bound


def test_nothing_is_reserved_without_prices() -> None:
    assert ReservationBound(None, 1).pico(100, 100) == 0
    assert ReservationBound({}, 3).pico(100, 100) == 0


@given(
    st.integers(0, 10**7),
    st.integers(1, 10**6),
    st.lists(
        st.tuples(*[st.decimals(0, 1000, allow_nan=False, allow_infinity=False, places=9)] * 4), max_size=3
    ),
    st.integers(1, 5),
)
def test_a_bound_is_the_dearest_price_rounded_up(
    size: int, cap: int, rates: list[tuple[Decimal, ...]], calls: int
) -> None:
    prices = {
        f"m{number}": Price(input=a, cached_input=b, cache_write=c, output=d)
        for number, (a, b, c, d) in enumerate(rates)
    }
    prompt = max((max(rate[:3]) for rate in rates), default=Decimal(0))
    output = max((rate[3] for rate in rates), default=Decimal(0))
    tokens = calls * (size + (calls - 1) * cap)
    exact = (Fraction(prompt) * tokens + Fraction(output) * calls * cap) * 10**6
    assert ReservationBound(prices, calls).pico(size, cap) == math.ceil(exact)
