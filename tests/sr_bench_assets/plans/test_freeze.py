"""Freezing: identity, defaults, verification, and the plan store."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from resources.canonical import content_hash, sha256_bytes
from resources.errors import IntegrityError, NotFound, Problems, SrBenchError
from resources.store import Store
from resources.target_registry import parse_targets, register_targets
from sr_bench_assets.datasets.artifact import DatasetManifest
from sr_bench_assets.plans.freeze import freeze, freeze_file, frozen_from
from sr_bench_assets.plans.manifest import FrozenPlan
from sr_bench_assets.plans.plan_store import (
    dataset_file,
    get_plan,
    load_plan,
    newest_plan,
    plan_document,
    put_plan,
)
from sr_bench_assets.plans.reading import read_manifest
from tests.planning import manifest_document, mom, publish_cases, single

Freeze = Callable[..., FrozenPlan]


def test_frozen_plan_carries_defaults_and_its_hash(dataset: DatasetManifest, freeze_document: Freeze) -> None:
    plan = freeze_document(manifest_document(dataset))
    document = plan_document(plan)
    body = {name: value for name, value in document.items() if name != "plan_sha256"}
    assert plan.plan_sha256 == content_hash(body)
    assert document["limits"]["max_rejections_per_call"] == 8
    assert document["limits"]["max_cost_usd"] == "5"
    assert document["cost_policy"] == "require_priced"
    assert document["targets"][0]["prices"]["small-1"]["input"] == "0.5"
    assert plan.case_count == 3
    assert plan.case_sha256 == sha256_bytes(b"mmlu-pro/0\nmmlu-pro/1\nmmlu-pro/2")
    assert plan.benchmarks["mmlu-pro"].case_sha256 == dataset.sha256
    assert (plan.dataset_id, plan.dataset_split) == (dataset.id, "dev")
    assert document["dataset_provenance"]["sources"]["mmlu-pro"]["revision"] == "r1"


def _shuffled(value: Any, rng: random.Random) -> Any:
    if isinstance(value, dict):
        keys = list(value)
        rng.shuffle(keys)
        return {key: _shuffled(value[key], rng) for key in keys}
    return [_shuffled(item, rng) for item in value] if isinstance(value, list) else value


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(), as_yaml=st.booleans(), flow=st.booleans())
def test_hash_is_the_same_for_any_key_order_and_for_yaml_and_json(
    store: Store, dataset: DatasetManifest, tmp_path: Path, seed: int, as_yaml: bool, flow: bool
) -> None:
    document = manifest_document(
        dataset,
        limits={"concurrency": 4, "max_cost_usd": 2.50},
        targets=[single(request_params={"temperature": 0.1, "reasoning": {"effort": "low", "n": 3}}), mom()],
    )
    path = tmp_path / "manifest"
    path.write_text(json.dumps(document))
    expected = freeze_file(path, store, {}).plan_sha256
    shuffled = _shuffled(document, random.Random(seed))
    dumped = (
        yaml.safe_dump(shuffled, sort_keys=False, default_flow_style=flow)
        if as_yaml
        else json.dumps(shuffled)
    )
    path.write_text(dumped)
    assert freeze_file(path, store, {}).plan_sha256 == expected


def test_equal_amounts_are_equal_however_written(dataset: DatasetManifest, freeze_document: Freeze) -> None:
    def hash_of(amount: Any) -> str:
        return freeze_document(manifest_document(dataset, limits={"max_cost_usd": amount})).plan_sha256

    assert len({hash_of(amount) for amount in (100, 100.0, "100", "100.00", "1e2")}) == 1
    assert hash_of("100.000000000001") != hash_of(100)


def test_any_other_content_is_another_hash(dataset: DatasetManifest, freeze_document: Freeze) -> None:
    base = freeze_document(manifest_document(dataset)).plan_sha256
    for change in (
        {"name": "other"},
        {"limits": {"concurrency": 2}},
        {"sampling": {"temperature": 0.5}},
        {"targets": [single(), mom(config_hash="c3")]},
        {"non_inferiority": {"margin": "0.02"}},
    ):
        assert freeze_document(manifest_document(dataset, **change)).plan_sha256 != base


def test_frozen_plan_is_verified_when_read_again(
    store: Store, dataset: DatasetManifest, freeze_document: Freeze, tmp_path: Path
) -> None:
    plan = freeze_document(manifest_document(dataset))
    file = tmp_path / "frozen.json"
    file.write_text(json.dumps(plan_document(plan), indent=2))
    assert load_plan(file) == plan
    assert frozen_from(file, store, {}) == plan
    assert get_plan(store, plan.plan_sha256[:12]) == plan
    file.write_text(yaml.safe_dump(plan_document(plan)))
    assert load_plan(file) == plan
    for change in ({"name": "x"}, {"plan_sha256": "0" * 64}, {"extra": 1}, {"seed": 2**60}):
        file.write_text(json.dumps({**plan_document(plan), **change}))
        for read in (load_plan, lambda path: frozen_from(path, store, {})):
            with pytest.raises(IntegrityError) as caught:
                read(file)
            assert caught.value.code == "changed_plan"


def test_a_manifest_is_no_frozen_plan(dataset: DatasetManifest, tmp_path: Path) -> None:
    file = tmp_path / "manifest.json"
    file.write_text(json.dumps(manifest_document(dataset)))
    with pytest.raises(SrBenchError, match="no frozen plan") as caught:
        load_plan(file)
    assert caught.value.code == "not_frozen"


def test_preflight_of_a_frozen_plan_is_repeated(
    store: Store, dataset: DatasetManifest, freeze_document: Freeze, tmp_path: Path
) -> None:
    document = manifest_document(dataset, targets=[single(api_key_env="SOME_KEY")])
    plan = freeze_document(document, {"SOME_KEY": "k"})
    file = tmp_path / "frozen.json"
    file.write_text(json.dumps(plan_document(plan)))
    assert frozen_from(file, store, {"SOME_KEY": "other"}) == plan
    with pytest.raises(Problems) as caught:
        frozen_from(file, store, {})
    assert caught.value.problems[0].field == "targets[0].api_key_env"


def test_a_plan_of_another_adapter_version_is_refused(
    store: Store, dataset: DatasetManifest, freeze_document: Freeze, tmp_path: Path
) -> None:
    document = plan_document(freeze_document(manifest_document(dataset)))
    document["benchmarks"]["mmlu-pro"]["adapter_version"] = "of another time"
    body = {name: value for name, value in document.items() if name != "plan_sha256"}
    file = tmp_path / "frozen.json"
    file.write_text(json.dumps({**body, "plan_sha256": content_hash(body)}))
    with pytest.raises(IntegrityError) as caught:
        frozen_from(file, store, {})
    assert (caught.value.code, caught.value.field) == ("stale_plan", "benchmarks")


def test_a_plan_with_a_true_hash_over_forbidden_content_is_refused(
    store: Store, dataset: DatasetManifest, freeze_document: Freeze, tmp_path: Path
) -> None:
    document = plan_document(freeze_document(manifest_document(dataset)))
    document["targets"][0]["base_url"] = "http://user:secret@127.0.0.1/v1"
    body = {name: value for name, value in document.items() if name != "plan_sha256"}
    file = tmp_path / "frozen.json"
    file.write_text(json.dumps({**body, "plan_sha256": content_hash(body)}))
    with pytest.raises(Problems) as caught:
        frozen_from(file, store, {})
    assert "secret" not in str(caught.value.as_dict())


def test_storing_is_write_once(store: Store, dataset: DatasetManifest, freeze_document: Freeze) -> None:
    plan = freeze_document(manifest_document(dataset))
    path = put_plan(store, plan)
    before = path.read_bytes()
    assert path.stat().st_mode & 0o077 == 0
    assert put_plan(store, plan) == path
    assert path.read_bytes() == before
    path.write_bytes(before.replace(b"test plan", b"text plan"))
    for read in (lambda: get_plan(store, plan.plan_sha256), lambda: put_plan(store, plan)):
        with pytest.raises(IntegrityError):
            read()


def test_a_plan_under_another_plans_name_is_refused(
    store: Store, dataset: DatasetManifest, freeze_document: Freeze
) -> None:
    plan = freeze_document(manifest_document(dataset))
    other = freeze_document(manifest_document(dataset, name="other"))
    put_plan(store, plan).write_bytes(put_plan(store, other).read_bytes())
    with pytest.raises(IntegrityError):
        get_plan(store, plan.plan_sha256)


@pytest.mark.parametrize("name", ["", "abc", "0" * 64, "../../etc/passwd", "zzzzzzzz"])
def test_unknown_plans_are_not_found(store: Store, name: str) -> None:
    with pytest.raises(NotFound):
        get_plan(store, name)


def test_newest_plan_of_a_partition(store: Store, dataset: DatasetManifest, freeze_document: Freeze) -> None:
    assert newest_plan(store, "mmlu-pro", "smoke") is None
    first = freeze_document(manifest_document(dataset, name="first"))
    second = freeze_document(manifest_document(dataset, name="second"))
    for age, plan in ((20, first), (10, second)):
        path = put_plan(store, plan)
        stamp = path.stat().st_mtime_ns - age * 10**9
        os.utime(path, ns=(stamp, stamp))
    assert newest_plan(store, "mmlu-pro", "smoke") == second
    put_plan(store, first)
    assert newest_plan(store, "mmlu-pro", "smoke") == first
    assert newest_plan(store, "mmlu-pro", "quick") is None
    assert newest_plan(store, "gpqa-diamond", "smoke") is None


def test_dataset_is_found_after_the_store_moved(
    store: Store, dataset: DatasetManifest, freeze_document: Freeze, tmp_path: Path
) -> None:
    plan = freeze_document(manifest_document(dataset))
    assert dataset_file(store, plan) == Path(dataset.path)
    moved = store.root.rename(tmp_path / "elsewhere")
    assert dataset_file(Store.open(moved), plan) == moved / "datasets" / dataset.id / "cases.jsonl"


def test_paths_count_from_the_manifests_folder(
    store: Store, dataset: DatasetManifest, tmp_path: Path
) -> None:
    folder = tmp_path / "manifests"
    folder.mkdir()
    relative = os.path.relpath(dataset.path, folder)
    file = folder / "m.yaml"
    file.write_text(
        yaml.safe_dump(manifest_document(dataset, dataset={"path": relative, "sha256": dataset.sha256}))
    )
    assert freeze_file(file, store, {}).dataset.path == dataset.path


def test_registered_targets_are_frozen_whole(store: Store, dataset: DatasetManifest, tmp_path: Path) -> None:
    register_targets(store, parse_targets([single(), mom()]))
    file = tmp_path / "m.yaml"
    file.write_text(
        yaml.safe_dump(manifest_document(dataset, targets=[{"ref": "single-a"}, {"ref": "router"}]))
    )
    by_reference = freeze_file(file, store, {})
    file.write_text(yaml.safe_dump(manifest_document(dataset)))
    assert freeze_file(file, store, {}) == by_reference
    register_targets(store, parse_targets([single(model="small-2")]))
    assert by_reference.targets[0].model == "small-1"


def test_read_manifest_alone(store: Store, dataset: DatasetManifest, tmp_path: Path) -> None:
    file = tmp_path / "m.json"
    file.write_text(json.dumps(manifest_document(dataset)))
    manifest = read_manifest(file, store)
    assert freeze(manifest, store, {}) == freeze_file(file, store, {})
    file.write_text(json.dumps(manifest_document(dataset, modus="live", targets=[{"ref": "nobody"}])))
    with pytest.raises(Problems) as caught:
        read_manifest(file, store)
    assert {problem.field for problem in caught.value.problems} == {"modus", "targets[0].ref"}


def test_no_key_value_enters_a_plan(store: Store, dataset: DatasetManifest, freeze_document: Freeze) -> None:
    document = manifest_document(dataset, targets=[single(api_key_env="SOME_KEY")])
    put_plan(store, freeze_document(document, {"SOME_KEY": "sk-very-secret-value"}))
    for file in store.root.rglob("*"):
        assert not file.is_file() or b"sk-very-secret-value" not in file.read_bytes()


def test_two_benchmarks_in_one_dataset(store: Store, freeze_document: Freeze) -> None:
    from sr_bench_assets.datasets.artifact import lines_sha256, publish, read_lines

    parts = [publish_cases(store, 2), publish_cases(store, 1, "gpqa-diamond")]
    lines = [line for part in parts for line in read_lines(part.path, part.sha256)]
    merged = {
        name: {**getattr(parts[0], name), **getattr(parts[1], name)}
        for name in ("counts", "case_sha256", "sources", "selection")
    }
    facts = {
        name: getattr(parts[0], name) for name in ("profile", "split", "seed", "custom_subset", "preparation")
    }
    both = publish(store, lines, {**facts, **merged, "benchmarks": ("mmlu-pro", "gpqa-diamond")})
    plan = freeze_document(manifest_document(both))
    assert {name: planned.case_count for name, planned in plan.benchmarks.items()} == {
        "mmlu-pro": 2,
        "gpqa-diamond": 1,
    }
    assert plan.benchmarks["mmlu-pro"].case_sha256 == lines_sha256(lines[:2])
    assert plan.benchmarks["gpqa-diamond"].weight == "3/20"
