"""Plans that nobody wrote."""

from __future__ import annotations

import os

import orjson
import pytest

from resources.errors import Problems
from resources.store import Store
from resources.target_registry import parse_targets, register_targets
from sr_bench_assets.plans.composition import compose_default
from sr_bench_assets.plans.freeze import freeze
from sr_bench_assets.plans.summary import plan_markdown, plan_text
from tests.planning import mom, publish_cases, single


def test_registered_targets_times_newest_dataset(store: Store) -> None:
    old = publish_cases(store, 3)
    new = publish_cases(store, 4)
    publish_cases(store, 5, profile="quick")
    for age, dataset in ((10, old), (0, new)):
        folder = store.datasets_dir / dataset.id
        stamp = folder.stat().st_mtime - age
        os.utime(folder, (stamp, stamp))
    register_targets(store, parse_targets([single(), mom()]))
    manifest = compose_default(store, "mmlu-pro", "smoke", {})
    assert manifest.dataset.sha256 == new.sha256
    assert [target.id for target in manifest.targets] == ["router", "single-a"]
    assert manifest.cost_policy == "require_priced"
    plan = freeze(manifest, store, {})
    assert plan.case_count == 4
    assert plan.plan_sha256 == freeze(compose_default(store, "mmlu-pro", "smoke", {}), store, {}).plan_sha256
    assert plan.plan_sha256 in plan_text(plan)
    assert plan_markdown(plan).startswith("| | |\n|---|---|\n")


def test_one_unpriced_target_makes_it_capability_only(store: Store) -> None:
    publish_cases(store)
    register_targets(store, parse_targets([single(), single("free", prices=None)]))
    assert compose_default(store, "mmlu-pro", "smoke", {}).cost_policy == "capability_only"


def test_operators_defaults(store: Store) -> None:
    publish_cases(store)
    register_targets(store, parse_targets([single()]))
    options = {
        "limits": {"concurrency": 16},
        "sampling": {"max_tokens": 256},
        "cost_policy": "capability_only",
    }
    (store.root / "benchmark-options.json").write_bytes(orjson.dumps(options))
    manifest = compose_default(store, "mmlu-pro", "smoke", {})
    assert (manifest.limits.concurrency, manifest.sampling.max_tokens) == (16, 256)
    assert manifest.cost_policy == "capability_only"


def test_what_is_missing_is_named_at_once(store: Store) -> None:
    with pytest.raises(Problems) as caught:
        compose_default(store, "mmlu-pro", "smoke", {})
    assert [problem.field for problem in caught.value.problems] == ["dataset", "targets"]
    register_targets(store, parse_targets([single(api_key_env="UNSET_KEY")]))
    with pytest.raises(Problems) as caught:
        compose_default(store, "mmlu-pro", "smoke", {})
    fields = [problem.field for problem in caught.value.problems]
    assert fields == ["dataset", "targets.single-a.api_key_env"]
