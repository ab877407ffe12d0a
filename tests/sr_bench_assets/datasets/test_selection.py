"""The selection rule: what must hold for any source, whatever its order and strata."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.canonical import selection_hash
from resources.errors import SrBenchError
from sr_bench_assets.benchmarks.contract import CaseKey, Profile
from sr_bench_assets.datasets.selection import Order, order_keys, select

COUNTS: dict[Profile, int] = {"smoke": 2, "quick": 8, "standard": 12}
ORDERS = st.sampled_from(("stratified", "round_robin"))


def source(sizes: dict[str, int]) -> list[CaseKey]:
    return [CaseKey(f"b/{name}{n}", name, f"{name}{n}") for name, size in sizes.items() for n in range(size)]


SIZES = st.dictionaries(st.sampled_from("pqrstuvw"), st.integers(1, 40), min_size=1, max_size=6)
SOURCES = SIZES.filter(lambda sizes: sum(sizes.values()) >= 20).map(source)


def chosen(keys: list[CaseKey], profile: Profile, seed: int, order: Order = "stratified") -> list[str]:
    selection = select(keys, seed=seed, profile=profile, counts=COUNTS, order=order)
    return [keys[position].id for position in selection.positions]


@given(keys=SOURCES, seed=st.integers(0, 2**40), order=ORDERS)
def test_smoke_opens_quick_and_standard_is_disjoint(keys: list[CaseKey], seed: int, order: Order) -> None:
    smoke, quick, standard = (chosen(keys, profile, seed, order) for profile in COUNTS)
    assert quick[: len(smoke)] == smoke
    assert not set(quick) & set(standard)
    assert [len(smoke), len(quick), len(standard)] == list(COUNTS.values())


@given(keys=SOURCES, seed=st.integers(0, 99), order=ORDERS, data=st.data())
def test_the_order_of_source_rows_does_not_matter(
    keys: list[CaseKey], seed: int, order: Order, data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(keys))
    for profile in COUNTS:
        assert chosen(shuffled, profile, seed, order) == chosen(keys, profile, seed, order)


@given(sizes=SIZES, seed=st.integers(0, 99))
def test_every_prefix_keeps_the_strata_in_proportion(sizes: dict[str, int], seed: int) -> None:
    keys = source(sizes)
    ordered = [keys[position].stratum for position in order_keys(keys, seed)]
    assert ordered[: len(sizes)] == sorted(sizes)
    rest = ordered[len(sizes) :]
    for length in range(len(rest) + 1):
        taken = Counter(rest[:length])
        for name, size in sizes.items():
            # Merging by (k + 1/2) / n rounds each stratum's share to a neighbour of its exact value.
            exact = Fraction((size - 1) * length, max(len(rest), 1))
            assert abs(taken[name] - exact) <= Fraction(len(sizes), 2) + 1


@given(keys=SOURCES, seed=st.integers(0, 99))
def test_the_order_is_the_stated_rule(keys: list[CaseKey], seed: int) -> None:
    """Against the rule written down as plainly as possible, with exact fractions."""
    strata: dict[str, list[str]] = {}
    for key in sorted(keys, key=lambda key: selection_hash([seed, key.id])):
        strata.setdefault(key.stratum, []).append(key.id)
    first = [strata[name][0] for name in sorted(strata)]
    rest = sorted(
        (Fraction(2 * k + 1, 2 * (len(ids) - 1)), name, id)
        for name, ids in strata.items()
        for k, id in enumerate(ids[1:])
    )
    assert [keys[position].id for position in order_keys(keys, seed)] == [*first, *(id for _, _, id in rest)]


@given(sizes=SIZES, seed=st.integers(0, 99))
def test_round_robin_takes_turns(sizes: dict[str, int], seed: int) -> None:
    keys = source(sizes)
    left = Counter(sizes)
    expected: list[str] = []
    while left.total():
        turn = [name for name in sorted(left) if left[name]]
        expected += turn
        left.subtract(turn)
    assert [keys[position].stratum for position in order_keys(keys, seed, "round_robin")] == expected


@given(keys=SOURCES, seed=st.integers(0, 99), data=st.data())
def test_history_is_passed_over_once_and_never_fills(
    keys: list[CaseKey], seed: int, data: st.DataObject
) -> None:
    history = set(data.draw(st.lists(st.sampled_from([key.id for key in keys]), unique=True)))
    ordered = [keys[position].id for position in order_keys(keys, seed)]
    left = [id for id in ordered[COUNTS["quick"] :] if id not in history]
    if len(left) < COUNTS["standard"]:
        with pytest.raises(SrBenchError, match=f"{len(left)} are left"):
            select(keys, seed=seed, profile="standard", counts=COUNTS, excluded_ids=history)
        return
    selection = select(keys, seed=seed, profile="standard", counts=COUNTS, excluded_ids=history)
    assert [keys[position].id for position in selection.positions] == left[: COUNTS["standard"]]
    assert selection.excluded == len(history & set(ordered[COUNTS["quick"] :]))


def test_too_few_tasks_state_both_numbers() -> None:
    with pytest.raises(SrBenchError, match="needs 8 tasks, the source has 5"):
        select(source({"p": 5}), seed=1, profile="quick", counts=COUNTS)
    with pytest.raises(SrBenchError, match="needs 12 tasks, the source has 15, of which 7 are left after 8"):
        select(source({"p": 15}), seed=1, profile="standard", counts=COUNTS)


def test_history_is_for_standard_only() -> None:
    with pytest.raises(SrBenchError, match="standard only"):
        select(source({"p": 50}), seed=1, profile="quick", counts=COUNTS, excluded_ids={"b/p1"})


def test_a_limit_keeps_the_first_tasks_of_the_profile() -> None:
    keys = source({"p": 5})
    selection = select(keys, seed=1, profile="quick", counts=COUNTS, limit=3)
    assert list(selection.positions) == order_keys(keys, 1)[:3]
    for limit in (0, 9):
        with pytest.raises(SrBenchError, match="outside 1 to 8"):
            select(keys, seed=1, profile="quick", counts=COUNTS, limit=limit)


def test_an_id_that_occurs_twice_is_refused() -> None:
    with pytest.raises(SrBenchError, match="b/p0"):
        order_keys([*source({"p": 3}), CaseKey("b/p0", "q", "p0")], 1)


def test_strata_are_counted() -> None:
    selection = select(source({"p": 15, "q": 5}), seed=1, profile="quick", counts=COUNTS)
    assert selection.strata == {"p": (15, 6), "q": (5, 2)}
