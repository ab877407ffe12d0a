"""Task identity: the same task of the same source only; any change of the source is another identity."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.errors import SrBenchError
from sr_bench_assets.benchmarks.contract import CaseKey
from sr_bench_assets.datasets.artifact import SourceFile, source_sha256
from sr_bench_assets.datasets.exclusions import Family, NamedReference, Snapshot, excluded_cases
from sr_bench_assets.datasets.identity import SourceIdentity, task_identities
from sr_bench_assets.datasets.selection import order_keys

NATIVE = st.text(st.characters(categories=("L", "N")), min_size=1, max_size=8)
ROWS = st.lists(
    st.tuples(NATIVE, st.sampled_from("pqr")), min_size=1, max_size=30, unique_by=lambda row: row[0]
)


def keys_of(rows: list[tuple[str, str]]) -> list[CaseKey]:
    return [CaseKey(f"b/{native}", stratum, native) for native, stratum in rows]


def source_of(rows: list[tuple[str, str]], **changes: str) -> SourceIdentity:
    """The identity of a source whose file holds these rows."""
    data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    file = SourceFile(name="rows.jsonl", sha256=hashlib.sha256(data).hexdigest(), size=len(data))
    facts = {
        "benchmark": "b",
        "revision": "v1",
        "files_sha256": source_sha256([file]),
        "normalizer_version": "1",
        "source_partition": "test",
        **changes,
    }
    return SourceIdentity.model_validate(facts)


def snapshot_of(rows: list[tuple[str, str]], source: SourceIdentity) -> Snapshot:
    tasks = tuple(sorted(task_identities(keys_of(rows), source).values()))
    reference = NamedReference(kind="dataset", id="d", digest="d", dataset_id="d", cases_sha256="0")
    return Snapshot(
        references=(reference,), families={"b": Family(source=source, count=len(tasks), tasks=tasks)}
    )


@given(rows=ROWS, seed=st.integers(0, 99), data=st.data())
def test_appended_rows_are_another_source_although_old_rows_keep_their_order(
    rows: list[tuple[str, str]], seed: int, data: st.DataObject
) -> None:
    taken = {native for native, _ in rows}
    more = data.draw(ROWS.map(lambda new: [row for row in new if row[0] not in taken]).filter(bool))
    before, after = source_of(rows), source_of(rows + more)
    assert before.differences(after) == ["files_sha256"]
    old, new = task_identities(keys_of(rows), before), task_identities(keys_of(rows + more), after)
    assert len(set(old.values())) == len(rows)
    assert not set(old.values()) & set(new.values())
    with pytest.raises(SrBenchError) as caught:
        excluded_cases(snapshot_of(rows, before), after, new)
    assert caught.value.code == "source_conflict"
    for stratum in "pqr":
        orders = [
            [keys[place].id for place in order_keys(keys, seed) if keys[place].stratum == stratum]
            for keys in (keys_of(rows), keys_of(rows + more))
        ]
        assert [id for id in orders[1] if id in set(orders[0])] == orders[0]


@given(rows=ROWS, data=st.data())
def test_a_snapshot_excludes_exactly_the_tasks_it_names(
    rows: list[tuple[str, str]], data: st.DataObject
) -> None:
    named = data.draw(st.lists(st.sampled_from(rows), unique=True, min_size=1))
    source = source_of(rows)
    everything = task_identities(keys_of(rows), source)
    found = excluded_cases(snapshot_of(named, source), source, everything)
    assert found == {f"b/{native}" for native, _ in named}


@given(
    member=st.sampled_from(
        ["benchmark", "revision", "files_sha256", "normalizer_version", "source_partition"]
    ),
    value=NATIVE,
)
def test_every_member_of_the_source_is_part_of_the_identity(member: str, value: str) -> None:
    rows = [("a", "p"), ("b", "q")]
    one, other = source_of(rows), source_of(rows, **{member: f"other {value}"})
    assert one.differences(other) == [member]
    assert not set(task_identities(keys_of(rows), one).values()) & set(
        task_identities(keys_of(rows), other).values()
    )


def test_a_task_without_a_native_id_has_no_identity() -> None:
    with pytest.raises(SrBenchError) as caught:
        task_identities([CaseKey("b/", "p", "")], source_of([("a", "p")]))
    assert caught.value.code == "no_task_identity"
