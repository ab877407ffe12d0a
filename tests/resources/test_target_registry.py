"""The registry: all targets of a file or none, ids replaced, concurrent changes kept."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from resources.errors import IntegrityError, NotFound, Problems
from resources.store import Store
from resources.target_registry import (
    FILE_NAME,
    get_target,
    list_targets,
    parse_targets,
    register_targets,
    remove_target,
)
from tests.planning import mom, single


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store")


def test_register_list_update_remove(store: Store) -> None:
    assert list_targets(store) == []
    done = register_targets(store, parse_targets([single("b"), mom("a")]))
    assert (done.registered, done.updated, done.unchanged) == (("b", "a"), (), ())
    assert [target.id for target in list_targets(store)] == ["a", "b"]
    done = register_targets(store, parse_targets([single("b", model="small-2"), mom("a"), single("c")]))
    assert (done.registered, done.updated, done.unchanged) == (("c",), ("b",), ("a",))
    assert get_target(store, "b").model == "small-2"
    assert (store.root / FILE_NAME).stat().st_mode & 0o077 == 0
    for target_id in ("a", "b", "c"):
        remove_target(store, target_id)
    assert list_targets(store) == []
    with pytest.raises(NotFound):
        remove_target(store, "a")


def test_unknown_target_names_the_known_ones(store: Store) -> None:
    register_targets(store, parse_targets([single("a"), single("b")]))
    with pytest.raises(NotFound) as caught:
        get_target(store, "c")
    assert "a, b" in (caught.value.mend or "")


@pytest.mark.parametrize("document", [single(), [single()], {"targets": [single()]}])
def test_shapes_of_a_file(document: Any) -> None:
    assert [target.id for target in parse_targets(document)] == ["single-a"]


@pytest.mark.parametrize(
    ("document", "fields"),
    [
        ([single("a"), single("a")], ["[1].id"]),
        ({"targets": [single("a"), single("a", x=1)]}, ["targets[1].x"]),
        ([single(api_key="sk-1"), mom(config_hash=None)], ["[0].api_key", "[1].config_hash"]),
        (single(base_url="http://a:b@c"), ["base_url"]),
        ([], [None]),
        ("text", [None]),
        ([3], ["[0]"]),
        (
            single(prices={"m": {"input": True, "cached_input": 1, "cache_write": 1}}),
            ["prices.m.input", "prices.m.output"],
        ),
    ],
)
def test_problems_of_a_file(document: Any, fields: list[str | None]) -> None:
    with pytest.raises(Problems) as caught:
        parse_targets(document)
    assert [problem.field for problem in caught.value.problems] == fields
    assert all(problem.mend for problem in caught.value.problems)
    assert "sk-1" not in str(caught.value.as_dict())


def test_a_near_miss_is_suggested() -> None:
    with pytest.raises(Problems) as caught:
        parse_targets(single(price={}))
    assert "'prices'" in (caught.value.problems[0].mend or "")


def test_a_damaged_registry(store: Store) -> None:
    (store.root / FILE_NAME).write_text('[{"id": 1}]')
    with pytest.raises(IntegrityError):
        list_targets(store)


def test_simultaneous_registrations_all_stay(store: Store) -> None:
    ids = [f"t{number}" for number in range(12)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda target_id: register_targets(store, parse_targets(single(target_id))), ids))
    assert {target.id for target in list_targets(store)} == set(ids)
