"""Bad manifests: every problem is found in one look, and names its field."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from resources.errors import IntegrityError, NotFound, Problems
from resources.store import Store
from sr_bench_assets.benchmarks.contract import Benchmark
from sr_bench_assets.benchmarks.registry import get_benchmark
from sr_bench_assets.datasets.artifact import DatasetManifest
from sr_bench_assets.plans.advice import advice
from sr_bench_assets.plans.dataset_checks import check_benchmarks
from sr_bench_assets.plans.draft import Draft, draft_of_document
from sr_bench_assets.plans.manifest import FrozenPlan, Limits
from tests.planning import PRICE, manifest_document, mom, publish_cases, single

Freeze = Callable[..., FrozenPlan]
ProblemsOf = Callable[..., dict[str, str]]


def test_all_problems_at_once(dataset: DatasetManifest, problems_of: ProblemsOf) -> None:
    found = problems_of(
        {
            "nam": "x",
            "profile": "quick",
            "seed": 1,
            "dataset": {"path": dataset.path, "sha256": dataset.sha256},
            "limits": {"concurrency": 0, "idle_timeout_s": 200, "max_calls": 3},
            "sampling": {"temperature": 3, "max_tokens": 8192},
            "targets": [
                single(modell="x", base_url="http://u:p@host/v1?key=1", api_key_env="UNSET_KEY"),
                single(prices=None),
                mom(config_hash=None, max_inference_calls=None),
                {"ref": "nobody"},
                {"kind": "single"},
            ],
        }
    )
    assert set(found) == {
        "name",
        "nam",
        "profile",
        "seed",
        "limits.concurrency",
        "limits.idle_timeout_s",
        "limits.max_calls",
        "sampling.temperature",
        "sampling.max_tokens",
        "targets[0].modell",
        "targets[0].base_url",
        "targets[0].api_key_env",
        "targets[1].id",
        "targets[1].prices",
        "targets[2].config_hash",
        "targets[2].max_inference_calls",
        "targets[3].ref",
        "targets[4].id",
        "targets[4].base_url",
        "targets[4].model",
    }


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"version": "sr-bench-2.0"}, "version"),
        ({"name": ""}, "name"),
        ({"name": 7}, "name"),
        ({"mode": "dead"}, "mode"),
        ({"profile": "huge"}, "profile"),
        ({"seed": "20260918"}, "seed"),
        ({"seed": True}, "seed"),
        ({"seed": 2**60}, "seed"),
        ({"seed": 5}, "seed"),
        ({"profile": "quick"}, "profile"),
        ({"dataset": {"path": "x"}}, "dataset.sha256"),
        ({"dataset": {"path": "nowhere.jsonl", "sha256": "0" * 64}}, "dataset.path"),
        ({"targets": []}, "targets"),
        ({"targets": {}}, "targets"),
        ({"cost_policy": "free"}, "cost_policy"),
        ({"limits": {"concurrency": 1025}}, "limits.concurrency"),
        ({"limits": {"concurrency": "4"}}, "limits.concurrency"),
        ({"limits": {"concurrency": 1.5}}, "limits.concurrency"),
        ({"limits": {"max_cost_usd": -1}}, "limits.max_cost_usd"),
        ({"limits": {"max_cost_usd": "much"}}, "limits.max_cost_usd"),
        ({"limits": {"max_cost_usd": 10**9}}, "limits.max_cost_usd"),
        ({"limits": {"total_timeout_s": 0}}, "limits.total_timeout_s"),
        ({"limits": {"connect_timeout_s": 31}}, "limits.connect_timeout_s"),
        ({"limits": {"idle_timeout_s": 181}}, "limits.idle_timeout_s"),
        ({"limits": {"total_timeout_s": 601}}, "limits.total_timeout_s"),
        ({"limits": {"case_timeout_s": 1801}}, "limits.case_timeout_s"),
        ({"limits": {"max_run_seconds": 100}}, "limits.case_timeout_s"),
        ({"limits": {"max_output_tokens": 4095}}, "sampling.max_tokens"),
        ({"sampling": {"top_p": 0}}, "sampling.top_p"),
        ({"sampling": {"temperature": -0.1}}, "sampling.temperature"),
        ({"sampling": {"max_tokens": 4097}}, "sampling.max_tokens"),
        ({"sampling": {"stream": "yes"}}, "sampling.stream"),
        ({"non_inferiority": {"margin": 1}}, "non_inferiority.margin"),
        ({"benchmark_options": {"hle": {}}}, "benchmark_options.hle"),
        ({"benchmark_options": {"mmlu-pro": {"shots": 5}}}, "benchmark_options.mmlu-pro.shots"),
        ({"benchmark_options": {"mmlu-pro": 5}}, "benchmark_options.mmlu-pro"),
        ({"auxiliary_targets": {"referee": None}}, "auxiliary_targets.referee"),
        ({"auxiliary_targets": {"judge": {"ref": "nobody"}}}, "auxiliary_targets.judge.ref"),
    ],
)
def test_wrong_member(
    dataset: DatasetManifest, problems_of: ProblemsOf, members: dict[str, Any], field: str
) -> None:
    assert list(problems_of(manifest_document(dataset, **members))) == [field]


@pytest.mark.parametrize(
    ("target", "field"),
    [
        (single(id="-x"), "id"),
        (single(id="a b"), "id"),
        (single(kind="both"), "kind"),
        (single(base_url="ftp://host/v1"), "base_url"),
        (single(base_url="http:///v1"), "base_url"),
        (single(base_url="host/v1"), "base_url"),
        (single(base_url="http://host:99999/v1"), "base_url"),
        (single(base_url="http://ho st/v1"), "base_url"),
        (single(base_url="http://host/v1#x"), "base_url"),
        (single(base_url="http://host/v1/chat/completions"), "base_url"),
        (single(api_key_env="sk-123"), "api_key_env"),
        (single(prices=None), "prices"),
        (single(prices={}), "prices"),
        (single(prices={"m": {**PRICE, "input": -1}}), "prices.m.input"),
        (single(prices={"a/b": {"input": 1}}), 'prices["a/b"].output'),
        (single(expected_response_model="other"), "prices"),
        (single(request_params={"messages": []}), "request_params.messages"),
        (single(request_params={"n": 2}), "request_params.n"),
        (single(request_params={"max_tokens": 5000}), "request_params.max_tokens"),
        (single(request_params={"max_tokens": "5"}), "request_params.max_tokens"),
        (single(request_params={"api_key": "sk-1"}), "request_params.api_key"),
        (single(rate_limit={"max_concurrency": 0}), "rate_limit.max_concurrency"),
        (single(rate_limit={"tokens_per_minute": 4096}), "rate_limit.tokens_per_minute"),
        (single(config_hash="x"), "config_hash"),
        (single(session_mode="session_aware"), "session_mode"),
        (mom(config_hash=None), "config_hash"),
        (mom(config_hash="two words"), "config_hash"),
        (mom(max_inference_calls=None), "max_inference_calls"),
        (mom(prices=None), "prices"),
        (mom(preview_url="http://u:p@h/x"), "preview_url"),
        (mom(capture_recipe=True), "preview_url"),
    ],
)
def test_wrong_target(
    dataset: DatasetManifest, problems_of: ProblemsOf, target: dict[str, Any], field: str
) -> None:
    assert f"targets[0].{field}" in problems_of(manifest_document(dataset, targets=[target]))


def test_unpriced_targets_need_capability_only(dataset: DatasetManifest, freeze_document: Freeze) -> None:
    targets = [single(prices=None), mom(prices=None, max_inference_calls=None)]
    plan = freeze_document(manifest_document(dataset, targets=targets, cost_policy="capability_only"))
    assert any("no saving can be claimed" in line for line in advice(plan))


def test_a_short_idle_timeout_takes_the_connect_timeout_along(
    dataset: DatasetManifest, freeze_document: Freeze, problems_of: ProblemsOf
) -> None:
    plan = freeze_document(manifest_document(dataset, limits={"idle_timeout_s": 2}))
    assert plan.limits.connect_timeout_s == 2
    written = manifest_document(dataset, limits={"idle_timeout_s": 2, "connect_timeout_s": 3})
    assert list(problems_of(written)) == ["limits.connect_timeout_s"]


@pytest.mark.parametrize("value", [None, "", "  "])
def test_missing_environment(dataset: DatasetManifest, problems_of: ProblemsOf, value: str | None) -> None:
    env = {} if value is None else {"MY_KEY": value}
    document = manifest_document(dataset, targets=[single(api_key_env="MY_KEY")])
    assert "MY_KEY" in problems_of(document, env)["targets[0].api_key_env"]


def test_a_key_in_the_wrong_place_is_never_shown(dataset: DatasetManifest, problems_of: ProblemsOf) -> None:
    key = "abcdef0123456789abcdef0123456789"
    for target in (
        single(api_key_env=key),
        single(api_key_env=f"sk-{key}"),
        single(base_url=f"http://{key}@host/v1"),
        single(base_url=f"http://host/v1?key={key}"),
        single(request_params={"headers": {"Authorization": key}}),
        single(pricing_basis={"key": key}),
    ):
        assert key not in str(problems_of(manifest_document(dataset, targets=[target])))


def test_a_changed_dataset_byte_is_refused(dataset: DatasetManifest, problems_of: ProblemsOf) -> None:
    path = Path(dataset.path)
    path.chmod(0o600)
    data = bytearray(path.read_bytes())
    data[10] ^= 1
    path.write_bytes(bytes(data))
    assert list(problems_of(manifest_document(dataset))) == ["dataset.sha256"]


def test_a_changed_dataset_manifest_is_refused(dataset: DatasetManifest, problems_of: ProblemsOf) -> None:
    path = Path(dataset.path).with_name("manifest.json")
    path.chmod(0o600)
    document = orjson.loads(path.read_bytes())
    path.write_bytes(orjson.dumps({**document, "split": "holdout"}))
    assert list(problems_of(manifest_document(dataset))) == ["dataset.path"]


def test_another_datasets_cases_are_refused(store: Store, problems_of: ProblemsOf) -> None:
    one, other = publish_cases(store, 3), publish_cases(store, 4)
    document = manifest_document(one, dataset={"path": one.path, "sha256": other.sha256})
    assert list(problems_of(document)) == ["dataset.sha256"]


def test_holdout_is_for_standard_and_standard_for_holdout(store: Store, problems_of: ProblemsOf) -> None:
    as_dev = publish_cases(store, profile="standard", split="dev")
    assert list(problems_of(manifest_document(as_dev))) == ["dataset"]
    tuned_on = publish_cases(store, profile="quick", split="holdout")
    assert list(problems_of(manifest_document(tuned_on))) == ["dataset"]
    holdout = publish_cases(store, profile="standard")
    assert set(problems_of(manifest_document(holdout, profile="quick"))) == {"profile", "dataset"}


def test_standard_is_planned_over_its_holdout(store: Store, freeze_document: Freeze) -> None:
    plan = freeze_document(manifest_document(publish_cases(store, profile="standard")))
    assert plan.dataset_split == "holdout"


def test_unknown_benchmark(store: Store, problems_of: ProblemsOf) -> None:
    strange = publish_cases(store, benchmark="nobodys-benchmark")
    assert "nobodys-benchmark" in problems_of(manifest_document(strange))["dataset.benchmarks"]


def _draft(dataset: DatasetManifest, **members: Any) -> Draft:
    draft, _, _ = draft_of_document(manifest_document(dataset, **members))
    assert draft is not None
    return draft


def _fields(draft: Draft, benchmark: Benchmark) -> dict[str, str]:
    problems = check_benchmarks(draft, None, {benchmark.id: benchmark})
    assert all(problem.mend for problem in problems)
    return {problem.field or "": problem.message for problem in problems}


def test_a_benchmark_without_executor_is_refused_clearly(dataset: DatasetManifest) -> None:
    benchmark = replace(get_benchmark("mmlu-pro"), execute=None, needs=("sandbox",))
    assert "cannot run it (it needs sandbox)" in _fields(_draft(dataset), benchmark)["dataset"]


def test_judged_benchmarks_need_judge_and_grader_version(dataset: DatasetManifest) -> None:
    version = "sr-bench-reference-judge-v1"
    benchmark = replace(get_benchmark("mmlu-pro"), needs=("judge",), grader_version=version)
    assert set(_fields(_draft(dataset), benchmark)) == {
        "auxiliary_targets.judge",
        "benchmark_options.mmlu-pro.grader_version",
    }
    judged = {"auxiliary_targets": {"judge": single("judge")}}
    options: Mapping[str, Any] = {"benchmark_options": {"mmlu-pro": {"grader_version": version}}}
    assert _fields(_draft(dataset, **judged, **options), benchmark) == {}
    other = {"benchmark_options": {"mmlu-pro": {"grader_version": "my-own"}}}
    assert set(_fields(_draft(dataset, **judged, **other), benchmark)) == {
        "benchmark_options.mmlu-pro.grader_version"
    }


def test_required_options_and_simulator(dataset: DatasetManifest) -> None:
    benchmark = replace(
        get_benchmark("mmlu-pro"),
        needs=("simulator",),
        required_options={"release": "1.0.1"},
        options={"x": "y"},
    )
    assert set(_fields(_draft(dataset), benchmark)) == {
        "auxiliary_targets.simulator",
        "benchmark_options.mmlu-pro.release",
    }
    members = {
        "auxiliary_targets": {"simulator": single("user")},
        "benchmark_options": {"mmlu-pro": {"release": "1.0.1", "x": 3}},
    }
    assert _fields(_draft(dataset, **members), benchmark) == {}


@pytest.fixture
def judged_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    """MMLU-Pro, as if it were graded by a judge."""
    benchmark = replace(
        get_benchmark("mmlu-pro"), needs=("judge",), grader_version="sr-bench-reference-judge-v1"
    )
    monkeypatch.setattr("sr_bench_assets.plans.dataset_checks.get_benchmark", lambda _: benchmark)


@pytest.mark.usefixtures("judged_benchmark")
def test_judge_may_come_from_the_operators_options(
    store: Store, dataset: DatasetManifest, freeze_document: Freeze, problems_of: ProblemsOf
) -> None:
    file = store.root / "benchmark-options.json"
    options = {
        "auxiliary_targets": {"judge": single("judge", api_key_env="JUDGE_KEY"), "simulator": single("user")},
        "benchmark_options": {
            "mmlu-pro": {"grader_version": "sr-bench-reference-judge-v1"},
            "tau3": {"release": "1.0.1"},
        },
    }
    file.write_bytes(orjson.dumps(options))
    plan = freeze_document(manifest_document(dataset), {"JUDGE_KEY": "k"})
    assert plan.auxiliary_targets.judge is not None
    assert plan.auxiliary_targets.judge.id == "judge"
    assert plan.auxiliary_targets.simulator is None
    assert list(plan.benchmark_options) == ["mmlu-pro"]
    own = manifest_document(dataset, auxiliary_targets={"judge": single("mine")})
    frozen = freeze_document(own)
    assert frozen.auxiliary_targets.judge is not None
    assert frozen.auxiliary_targets.judge.id == "mine"
    assert list(problems_of(manifest_document(dataset))) == [
        "benchmark-options.json:auxiliary_targets.judge.api_key_env"
    ]
    file.write_bytes(b'{"judge": 1}')
    assert "benchmark-options.json:judge" in problems_of(manifest_document(dataset))
    file.write_bytes(b"{")
    assert "benchmark-options.json" in problems_of(manifest_document(dataset))


@pytest.mark.usefixtures("judged_benchmark")
def test_a_judge_is_a_priced_single_model_of_its_own_id(
    dataset: DatasetManifest, problems_of: ProblemsOf
) -> None:
    options = {"mmlu-pro": {"grader_version": "sr-bench-reference-judge-v1"}}

    def found(judge: dict[str, Any]) -> set[str]:
        document = manifest_document(dataset, auxiliary_targets={"judge": judge}, benchmark_options=options)
        return set(problems_of(document))

    path = "auxiliary_targets.judge"
    assert found(mom("judge")) == {f"{path}.kind"}
    assert found(single("judge", prices=None)) == {f"{path}.prices"}
    assert found(single("single-a", model="other")) == {f"{path}.id"}


def test_preview_plans_are_for_mom_targets(
    dataset: DatasetManifest, freeze_document: Freeze, problems_of: ProblemsOf
) -> None:
    found = problems_of(manifest_document(dataset, mode="preview"))
    assert set(found) == {"targets[0].kind", "targets[1].preview_url"}
    router = mom(
        preview_url="http://127.0.0.1:9/api/v1/routing/preview", prices=None, max_inference_calls=None
    )
    plan = freeze_document(manifest_document(dataset, mode="preview", targets=[router]))
    assert plan.mode == "preview"


def test_preview_keys_count_only_where_they_are_used(
    dataset: DatasetManifest, freeze_document: Freeze, problems_of: ProblemsOf
) -> None:
    router = mom(
        preview_url="http://127.0.0.1:9/api/v1/routing/preview",
        preview_api_key_env="PREVIEW_KEY",
        prices=None,
    )
    freeze_document(manifest_document(dataset, targets=[router], cost_policy="capability_only"))
    for members in ({"mode": "preview"}, {"cost_policy": "capability_only"}):
        target = {**router, "capture_recipe": "mode" not in members}
        found = problems_of(manifest_document(dataset, targets=[target], **members))
        assert list(found) == ["targets[0].preview_api_key_env"]


def test_a_number_without_canonical_form(dataset: DatasetManifest, problems_of: ProblemsOf) -> None:
    target = single(request_params={"seed": 2**60})
    assert "canonical" in problems_of(manifest_document(dataset, targets=[target]))["targets"]


@pytest.mark.parametrize("document", [[], "text", 3, None])
def test_what_is_no_mapping_is_no_manifest(freeze_document: Freeze, document: Any) -> None:
    with pytest.raises(Problems):
        freeze_document(document)


def test_advice(store: Store, freeze_document: Freeze) -> None:
    sample = publish_cases(store, sample_data="made up by the tests", custom_subset=True)
    target = single(model="other-name")
    plan = freeze_document(manifest_document(sample, targets=[target], limits={"max_cost_usd": "0.001"}))
    text = "\n".join(advice(plan))
    for part in ("sample data", "custom subset", "prices do not name 'other-name'", "does not cover"):
        assert part in text


def test_a_missing_manifest_beside_the_cases(
    store: Store, dataset: DatasetManifest, problems_of: ProblemsOf
) -> None:
    Path(dataset.path).with_name("manifest.json").unlink()
    assert list(problems_of(manifest_document(dataset))) == ["dataset.path"]


def test_exit_codes() -> None:
    assert (Problems("", []).exit_code, IntegrityError("").exit_code, NotFound("").exit_code) == (2, 2, 3)


@pytest.mark.parametrize("benchmark", ["hle", "simpleqa-verified"])
def test_built_in_judged_benchmarks(store: Store, problems_of: ProblemsOf, benchmark: str) -> None:
    dataset = publish_cases(store, benchmark=benchmark)
    found = problems_of(manifest_document(dataset))
    assert set(found) == {"auxiliary_targets.judge", f"benchmark_options.{benchmark}.grader_version"}


def test_documented_limits_are_the_defaults() -> None:
    text = (Path(__file__).parents[3] / "docs" / "manifest.md").read_text(encoding="utf-8")
    section = text.split("### Limits")[1].split("### Sampling")[0]
    rows = [line.split("|") for line in section.splitlines() if line.startswith("| `")]
    documented = {row[1].strip().strip("`"): float(row[2]) for row in rows}
    assert documented == {name: float(value) for name, value in Limits().model_dump().items()}
