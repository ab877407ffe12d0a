"""Pinned sources in Dagster: fetched once, upstream of datasets, and a changed byte is an observed difference."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from dagster import AssetKey, AssetRecordsFilter, DagsterInstance, ExecuteInProcessResult

from resources.store import Store
from sr_bench_assets.benchmarks import gpqa_diamond
from sr_bench_assets.benchmarks.contract import HubSource
from sr_bench_assets.benchmarks.registry import get_benchmark
from sr_bench_assets.datasets.preparation import prepare
from sr_bench_assets.datasets.request import PreparationRequest
from sr_bench_assets.definitions import defs
from sr_bench_assets.jobs import PREPARATION_JOB, SOURCE_JOB, SOURCE_OBSERVATION_JOB
from sr_bench_assets.partitions import partition_key
from sr_bench_assets.tags import DATA_VERSION_TAG
from tests.servers.hub import HubServer


def pinned() -> HubSource:
    source = gpqa_diamond.BENCHMARK.source
    assert isinstance(source, HubSource)
    return source


SOURCE = pinned()
(FILE,) = SOURCE.files


@pytest.fixture
def hub(gpqa_file: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    repos = {SOURCE.repo_id: {SOURCE.revision: {FILE: gpqa_file.read_bytes()}}}
    with HubServer(repos) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        yield server


@pytest.fixture
def instance() -> Iterator[DagsterInstance]:
    with DagsterInstance.ephemeral() as made:
        yield made


def execute(
    job: str, store: Store, instance: DagsterInstance, key: str | None = None
) -> ExecuteInProcessResult:
    resources = {"store": {"config": {"path": str(store.root)}}, "run_scope": {"config": {}}}
    if job != PREPARATION_JOB:
        del resources["run_scope"]
    return defs.resolve_job_def(job).execute_in_process(
        partition_key=key,
        instance=instance,
        run_config={
            "resources": resources,
            "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
        },
        raise_on_error=False,
    )


def look(store: Store, instance: DagsterInstance) -> bool:
    """Whether the check finds all sources unchanged."""
    (evaluation,) = execute(SOURCE_OBSERVATION_JOB, store, instance).get_asset_check_evaluations()
    return evaluation.passed


def latest(instance: DagsterInstance, kind: str) -> tuple[str, str]:
    """(data version, description) of the newest event of the source's partition."""
    wanted = AssetRecordsFilter(asset_key=AssetKey("task_source"), asset_partitions=["gpqa-diamond"])
    if kind == "observation":
        event = instance.fetch_observations(wanted, limit=1).records[0].event_log_entry.asset_observation
    else:
        event = instance.fetch_materializations(wanted, limit=1).records[0].asset_materialization
    assert event is not None
    return (event.tags or {})[DATA_VERSION_TAG], event.description or ""


def test_a_changed_byte_of_a_pinned_source_is_an_observed_difference(
    hub: HubServer, store: Store, instance: DagsterInstance
) -> None:
    assert look(store, instance)  # nothing fetched yet: nothing to watch
    assert execute(SOURCE_JOB, store, instance, "gpqa-diamond").success
    fetched, _ = latest(instance, "materialization")
    made = prepare(store, PreparationRequest(benchmarks=("gpqa-diamond",), profile="smoke"))
    assert made.sources["gpqa-diamond"].files_sha256 == fetched
    downloads = len(hub.gets(FILE))

    assert look(store, instance)
    assert latest(instance, "observation") == (fetched, "as first fetched")
    data = hub.repos[SOURCE.repo_id][SOURCE.revision][FILE]
    hub.repos[SOURCE.repo_id][SOURCE.revision][FILE] = data[:-3] + b"9" + data[-2:]
    assert not look(store, instance)
    version, description = latest(instance, "observation")
    assert version != fetched
    assert f"the hub now states other bytes for {FILE}" in description

    hub.faults.broken = True
    assert look(store, instance)  # an outage is no difference
    (kept,) = (store.root / "sources").rglob(FILE)
    kept.write_bytes(data[:-3] + b"8" + data[-2:])
    assert not look(store, instance)
    assert "our copy" in latest(instance, "observation")[1]
    kept.unlink()
    assert not look(store, instance)
    assert "is gone" in latest(instance, "observation")[1]
    assert len(hub.gets(FILE)) == downloads


def test_another_commit_in_the_pinned_ones_place_is_a_difference(
    hub: HubServer, store: Store, instance: DagsterInstance
) -> None:
    assert execute(SOURCE_JOB, store, instance, "gpqa-diamond").success
    hub.faults.other_commit = "f" * 40
    assert not look(store, instance)
    assert "f" * 40 in latest(instance, "observation")[1]


def test_a_stored_dataset_is_materialized_without_its_source(
    hub: HubServer, store: Store, instance: DagsterInstance, gpqa_file: Path
) -> None:
    for profile in ("quick", "smoke"):
        request = PreparationRequest(
            benchmarks=("gpqa-diamond",), profile=profile, source_path=str(gpqa_file), revision="v1"
        )
        prepare(store, request)
    result = execute(PREPARATION_JOB, store, instance, partition_key("gpqa-diamond", "smoke"))
    assert result.success
    checks = {check.check_name: check for check in result.get_asset_check_evaluations()}
    assert checks["splits_are_apart"].passed
    assert "quick" in str(checks["splits_are_apart"].metadata["compared_with"].value)
    assert checks["case_ids_are_unique"].passed
    assert not hub.seen
    materialization = result.asset_materializations_for_node("prepared_dataset")[0]
    table = str(materialization.metadata["categories"].value)
    assert "| field 0 | 1 |" in table
    assert table.splitlines()[0] == "| category | cases | share | in the source |"
    assert "| **all** | **4** | | 198 |" in table


def test_the_graph_has_the_source_upstream_by_benchmark() -> None:
    graph = defs.resolve_asset_graph()
    node = graph.get(AssetKey("prepared_dataset"))
    assert node.parent_keys == {AssetKey("task_source")}
    upstream = graph.get(AssetKey("task_source")).partitions_def
    assert upstream is not None
    assert set(upstream.get_partition_keys()) >= {"tau3", "mmlu-pro"}
    assert get_benchmark("tau3").visible_files is not None
