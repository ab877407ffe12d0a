"""The code location: what it defines, and that materializing it keeps the pipeline's promises."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson
import pytest
from dagster import (
    AssetKey,
    DagsterInstance,
    ExecuteInProcessResult,
    MultiPartitionsDefinition,
    MultiToSingleDimensionPartitionMapping,
    StaticPartitionsDefinition,
)
from sqlalchemy import update

from resources.journal.connection import open_journal
from resources.journal.runs import list_runs
from resources.journal.schema import runs
from resources.store import Store
from resources.target_registry import parse_targets, register_targets
from sensors.definitions import defs as code_location
from sr_bench_assets.definitions import defs
from sr_bench_assets.jobs import EVALUATION_JOB, SCORECARD_JOB, STAGES
from sr_bench_assets.partitions import partition_key
from sr_bench_assets.results.facts import load_results
from tests.planning import publish_cases
from tests.servers.lab import RunningLab, lab_in_thread

CASES = 4
CHECKS = {
    "prepared_dataset": {
        "cases_have_their_hash": True,
        "case_ids_are_unique": True,
        "splits_are_apart": True,
        "every_category_is_covered": False,
        "full_profile": False,
    },
    "frozen_plan": {"plan_covers_partition": True},
    "target_results": {
        "denominator_is_the_plan": True,
        "within_budget": True,
        "every_cell_ended": False,
    },
    "reconciled_usage": {"every_call_is_accounted_for": True, "usage_is_known": False},
    "benchmark_report": {"denominator_adds_up": True, "costs_are_known": False, "real_models": False},
    "scorecard": {"every_benchmark_is_complete": False, "real_models": False},
}
"""By asset, the checks and whether a failed one stops what comes after."""


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store")


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[DagsterInstance]:
    folder = tmp_path / "dagster"
    folder.mkdir()
    with DagsterInstance.local_temp(str(folder), overrides={"telemetry": {"enabled": False}}) as made:
        yield made


@pytest.fixture
def lab(store: Store) -> Iterator[RunningLab]:
    """A lab whose targets are registered, and a dataset of the partition mmlu-pro × smoke."""
    dataset = publish_cases(store, CASES)
    with lab_in_thread(datasets=[Path(dataset.path)]) as running:
        register_targets(store, parse_targets(running.targets))
        yield running


Materialize = Callable[..., ExecuteInProcessResult]


@pytest.fixture
def materialize(store: Store, instance: DagsterInstance) -> Materialize:
    """`materialize(job, key, scope=…, **config of assets)`: an in-process run that may fail."""

    def run(job: str = EVALUATION_JOB, key: str = "", scope: dict[str, str] | None = None, **ops: Any) -> Any:
        return defs.resolve_job_def(job).execute_in_process(
            partition_key=key or partition_key("mmlu-pro", "smoke"),
            instance=instance,
            run_config={
                "resources": {
                    "store": {"config": {"path": str(store.root)}},
                    "run_scope": {"config": scope or {}},
                },
                "ops": {name: {"config": config} for name, config in ops.items()},
                "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
            },
            raise_on_error=False,
        )

    return run


def versions(result: ExecuteInProcessResult) -> dict[str, str]:
    """Data version by asset that the run materialized."""
    events = result.get_asset_materialization_events()
    materializations = [event.step_materialization_data.materialization for event in events]
    return {m.asset_key.to_user_string(): (m.tags or {})["dagster/data_version"] for m in materializations}


def failed_checks(result: ExecuteInProcessResult) -> set[str]:
    return {e.check_name for e in result.get_asset_check_evaluations() if not e.passed and e.blocking}


def test_assets_their_order_and_their_checks() -> None:
    graph = code_location.resolve_asset_graph()
    for before, after in pairwise(STAGES):
        assert AssetKey(before) in graph.get(AssetKey(after)).parent_keys
    assert graph.get(AssetKey("scorecard")).parent_keys == {AssetKey("benchmark_report")}
    for name, checks in CHECKS.items():
        node = graph.get(AssetKey(name))
        assert node.code_version
        assert node.description
        assert node.group_name == "evaluation"
        specs = {key.name: graph.get_check_spec(key) for key in node.check_keys}
        assert {check: spec.blocking for check, spec in specs.items()} == checks
        assert all(spec.description for spec in specs.values())


def test_partitions_are_benchmark_by_profile() -> None:
    graph = code_location.resolve_asset_graph()
    for name in STAGES:
        partitions = graph.get(AssetKey(name)).partitions_def
        assert isinstance(partitions, MultiPartitionsDefinition)
        keys = {d.name: d.partitions_def.get_partition_keys() for d in partitions.partitions_defs}
        assert keys["profile"] == ["smoke", "quick", "standard"]
        assert len(keys["benchmark"]) >= 9
        assert {"mmlu-pro", "gpqa-diamond", "arc-agi-2"} < set(keys["benchmark"])
    card = graph.get(AssetKey("scorecard"))
    assert isinstance(card.partitions_def, StaticPartitionsDefinition)
    mapping = graph.get_partition_mapping(AssetKey("scorecard"), AssetKey("benchmark_report"))
    assert isinstance(mapping, MultiToSingleDimensionPartitionMapping)


def test_jobs_sensors_and_schedules() -> None:
    repository = code_location.get_repository_def()
    assert {"evaluate", "score", "prepare"} <= set(repository.job_names)
    assert {"dead_run_reconciliation", "artifact_lineage"} <= {s.name for s in repository.sensor_defs}
    assert "holdout_build" in {schedule.name for schedule in repository.schedule_defs}
    evaluation = repository.get_job(EVALUATION_JOB)
    assert {key.to_user_string() for key in evaluation.asset_layer.executable_asset_keys} >= set(STAGES)


def test_every_field_of_the_launchpad_has_a_description_and_a_default() -> None:
    for name in STAGES:
        config = code_location.resolve_assets_def(AssetKey(name)).op.config_schema.config_type
        for field in getattr(config, "fields", {}).values():
            assert field.description
            assert not field.is_required


def test_pinned_again_sends_nothing_and_gives_the_same_versions(
    store: Store, lab: RunningLab, materialize: Materialize
) -> None:
    first = materialize()
    assert first.success
    found = versions(first)
    assert set(found) == set(STAGES)
    sent = lab.stats()["requests"]
    assert sent == CASES * len(lab.targets)
    (run,) = list_runs(open_journal(store))

    plan = found["frozen_plan"]
    for scope in ({}, {"plan_sha256": plan}, {"plan_sha256": plan, "run_id": run.id}):
        again = materialize(scope=scope)
        assert again.success
        assert versions(again) == found
    assert lab.stats()["requests"] == sent
    card = materialize(SCORECARD_JOB, "smoke", scope={"plan_sha256": plan})
    assert versions(card).keys() == {"scorecard"}
    assert len(list_runs(open_journal(store))) == 1


def test_new_run_is_a_new_evaluation(store: Store, lab: RunningLab, materialize: Materialize) -> None:
    first = versions(materialize())
    again = versions(materialize(target_results={"new_run": True}))
    assert lab.stats()["requests"] == 2 * CASES * len(lab.targets)
    assert again["frozen_plan"] == first["frozen_plan"]
    assert again["target_results"] != first["target_results"]
    assert len(list_runs(open_journal(store))) == 2


def test_newer_dataset_is_evaluated_only_when_asked_for(
    store: Store, lab: RunningLab, materialize: Materialize
) -> None:
    first = versions(materialize())
    newer = publish_cases(store, CASES + 1)
    assert versions(materialize()) == first

    result = materialize(prepared_dataset={"dataset_id": newer.id[:12]}, target_results={"new_run": False})
    assert result.success
    assert versions(result)["prepared_dataset"] == newer.case_sha256["mmlu-pro"]
    assert versions(result)["frozen_plan"] != first["frozen_plan"]
    journal = open_journal(store)
    assert len(load_results(store, journal, list_runs(journal)[0].id)) == (CASES + 1) * len(lab.targets)


def test_unknown_dataset_is_named_not_downloaded(lab: RunningLab, materialize: Materialize) -> None:
    result = materialize(prepared_dataset={"dataset_id": "feedfacefeed"})
    assert not result.success
    assert versions(result) == {}


def test_without_targets_the_mend_is_told(store: Store, materialize: Materialize) -> None:
    publish_cases(store, CASES)
    result = materialize()
    (failure,) = [event for event in result.all_events if event.is_step_failure]
    error = failure.step_failure_data.error
    assert error is not None
    told = error.to_string()
    assert "No target is registered." in told
    assert "sr-bench target register" in told


def test_changed_byte_of_the_cases_stops_the_flow(
    store: Store, lab: RunningLab, materialize: Materialize
) -> None:
    plan = versions(materialize())["frozen_plan"]
    (path,) = store.datasets_dir.glob("*/cases.jsonl")
    path.chmod(0o600)
    path.write_bytes(path.read_bytes().replace(b"+ 1?", b"+ 2?", 1))
    sent = lab.stats()["requests"]

    result = materialize(scope={"plan_sha256": plan}, target_results={"new_run": True})

    assert not result.success
    assert "cases_have_their_hash" in failed_checks(result)
    assert set(versions(result)) == {"prepared_dataset"}
    assert lab.stats()["requests"] == sent


def test_result_outside_the_plan_stops_usage_and_report(
    store: Store, lab: RunningLab, materialize: Materialize
) -> None:
    plan = versions(materialize())["frozen_plan"]
    journal = open_journal(store)
    (run,) = list_runs(journal)
    # The run is now said to be of two cells only: the other sealed results lie outside of what was planned.
    scope = [["mmlu-pro/0", target["id"]] for target in lab.targets[:2]]
    with journal.begin() as connection:
        connection.execute(update(runs).where(runs.c.id == run.id).values(scope=json.dumps(scope)))

    result = materialize(scope={"plan_sha256": plan, "run_id": run.id})

    assert not result.success
    assert failed_checks(result) == {"denominator_is_the_plan"}
    assert set(versions(result)) == {"prepared_dataset", "frozen_plan", "target_results"}


def test_overrun_budget_stops_usage_and_report(
    store: Store, lab: RunningLab, materialize: Materialize
) -> None:
    plan = versions(materialize())["frozen_plan"]
    journal = open_journal(store)
    (run,) = list_runs(journal)
    with journal.begin() as connection:
        connection.execute(update(runs).where(runs.c.id == run.id).values(budget_pico=1))

    result = materialize(scope={"plan_sha256": plan, "run_id": run.id})

    assert not result.success
    assert failed_checks(result) == {"within_budget"}
    assert "reconciled_usage" not in versions(result)


def test_changed_plan_is_refused(store: Store, lab: RunningLab, materialize: Materialize) -> None:
    plan = versions(materialize())["frozen_plan"]
    path = store.plans_dir / f"{plan}.json"
    path.chmod(0o600)
    path.write_bytes(orjson.dumps({**orjson.loads(path.read_bytes()), "name": "another"}))
    result = materialize(scope={"plan_sha256": plan})
    assert not result.success
    assert versions(result) == {}


def test_no_answer_reaches_the_events(
    store: Store, lab: RunningLab, materialize: Materialize, instance: DagsterInstance
) -> None:
    """Labels stay inside: neither the reference answer nor a question is in anything Dagster keeps."""
    result = materialize()
    kept = "\n".join(str(record) for record in instance.all_logs(result.run_id))
    assert '"answer"' not in kept
    assert "+ 1?" not in kept
