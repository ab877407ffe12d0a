"""Sets of one source and seed lie to each other as the selection rule says, and a set that does not is found."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from resources.store import Store
from sr_bench_assets.benchmarks.contract import CaseKey, Profile
from sr_bench_assets.datasets.artifact import lines_sha256, publish, read_lines
from sr_bench_assets.datasets.checks import check_partition
from sr_bench_assets.datasets.selection import select
from sr_bench_assets.datasets.splits import NamedSet, sets_to_compare, split_conflicts

from .conftest import Prepare

COUNTS: dict[Profile, int] = {"smoke": 3, "quick": 8, "standard": 12}
KEYS = st.dictionaries(st.sampled_from("pqrst"), st.integers(1, 30), min_size=1).map(
    lambda sizes: [CaseKey(f"b/{s}{n}", s, f"{s}{n}") for s, size in sizes.items() for n in range(size)]
)


@given(
    keys=KEYS.filter(lambda keys: len(keys) >= 30),
    seed=st.integers(0, 99),
    limits=st.tuples(st.integers(1, 3), st.integers(1, 8), st.integers(1, 12)),
)
def test_what_is_selected_never_conflicts(
    keys: list[CaseKey], seed: int, limits: tuple[int, int, int]
) -> None:
    """Also where limits make the quick set smaller than smoke."""
    sets = [
        NamedSet(
            f"{profile} {limit}",
            profile,
            frozenset(
                keys[position].id
                for position in select(keys, seed=seed, profile=profile, counts=COUNTS, limit=limit).positions
            ),
        )
        for profile, small in zip(COUNTS, limits, strict=True)
        for limit in (None, small)
    ]
    for one in sets:
        assert split_conflicts(one.profile, one.ids, sets) == []


@given(
    smoke=st.frozensets(st.integers(0, 5).map(str), min_size=1),
    quick=st.frozensets(st.integers(3, 12).map(str), min_size=1),
    standard=st.frozensets(st.integers(10, 20).map(str), min_size=1),
)
def test_every_conflict_is_found(
    smoke: frozenset[str], quick: frozenset[str], standard: frozenset[str]
) -> None:
    nested = smoke <= quick or quick <= smoke
    assert bool(split_conflicts("smoke", smoke, [NamedSet("q", "quick", quick)])) is not nested
    assert bool(split_conflicts("quick", quick, [NamedSet("s", "standard", standard)])) is bool(
        quick & standard
    )
    assert bool(split_conflicts("standard", standard, [NamedSet("q", "quick", quick)])) is bool(
        quick & standard
    )


def test_a_standard_set_with_a_case_of_quick_fails_its_check(store: Store, prepare_mmlu: Prepare) -> None:
    quick, standard, smoke = (prepare_mmlu(profile=name) for name in ("quick", "standard", "smoke"))
    other_seed = prepare_mmlu(profile="quick", seed=5)
    compared = {one.dataset_id for one in sets_to_compare(store, standard, "mmlu-pro")}
    assert compared == {quick.id, smoke.id}
    assert other_seed.id not in compared
    results = {r.check_name: r for r in check_partition(store, standard, "mmlu-pro", "standard")}
    assert all(result.passed for result in results.values())

    lines = read_lines(standard.path, standard.sha256)
    lines[0] = read_lines(quick.path, quick.sha256)[0]
    facts = standard.model_dump(exclude={"id", "path", "sha256", "case_count", "version"})
    mixed = publish(store, lines, {**facts, "case_sha256": {"mmlu-pro": lines_sha256(lines)}})
    results = {r.check_name: r for r in check_partition(store, mixed, "mmlu-pro", "standard")}
    failed = results["splits_are_apart"]
    assert not failed.passed
    assert "1 cases are in standard and in quick" in str(failed.metadata["conflicts"].value)
