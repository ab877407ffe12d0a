"""A run is history by its frozen plan: every planned task counts, whatever became of it."""

from __future__ import annotations

import csv
import json
from decimal import Decimal
from pathlib import Path

import pytest

from cli.history import snapshot_of
from cli.output import Ctx
from resources.errors import SrBenchError
from resources.journal.connection import open_journal
from resources.journal.runs import create_run
from resources.store import Store
from sr_bench_assets.datasets.artifact import list_datasets
from sr_bench_assets.datasets.preparation import prepare
from sr_bench_assets.datasets.request import PreparationRequest
from sr_bench_assets.plans.freeze import freeze
from sr_bench_assets.plans.manifest import Manifest
from sr_bench_assets.plans.plan_store import put_plan
from tests.planning import manifest_document


def test_an_undispatched_run_reserves_all_its_tasks(tmp_path: Path) -> None:
    path = tmp_path / "gpqa.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(
            ["Question", "Correct Answer", *(f"Incorrect Answer {n}" for n in (1, 2, 3)), "Subdomain"]
        )
        writer.writerows([f"After {n}?", n + 1, n, n + 2, n + 3, n % 3] for n in range(198))
    store = Store.open(tmp_path / "store")
    request = PreparationRequest(
        benchmarks=("gpqa-diamond",),
        profile="quick",
        source_path=str(path),
        revision="v1",
        source_partition="diamond",
    )
    quick = prepare(store, request)
    plan = freeze(Manifest.model_validate(manifest_document(quick)), store, {})
    put_plan(store, plan)
    journal = open_journal(store)
    run, _ = create_run(
        journal,
        plan_sha256=plan.plan_sha256,
        name=plan.name,
        mode=plan.mode,
        profile=plan.profile,
        total_cells=80,
        budget_usd=Decimal(5),
    )

    snapshot = snapshot_of(Ctx(str(store.root)), [quick.id[:8]], [run.id])

    assert snapshot.families["gpqa-diamond"].count == 40
    assert [(reference.kind, reference.digest) for reference in snapshot.references] == [
        ("dataset", quick.id),
        ("run", plan.plan_sha256),
    ]
    assert plan.dataset_provenance["sources"]["gpqa-diamond"]["source_partition"] == "diamond"

    # From that history to a holdout: exact counts, kept by the plan; once it is history too, nothing is left.
    (tmp_path / "history.json").write_text(json.dumps(snapshot.as_dict()))
    with_history = request.model_copy(
        update={"profile": "standard", "exclusion_snapshot": str(tmp_path / "history.json")}
    )
    holdout = prepare(store, with_history)
    counts = holdout.exclusions["gpqa-diamond"]
    assert (counts.available, counts.quick, counts.history, counts.excluded) == (198, 40, 40, 40)
    assert (counts.remaining, counts.selected, holdout.case_count) == (158, 158, 158)
    planned = freeze(Manifest.model_validate(manifest_document(holdout)), store, {})
    kept = planned.dataset_provenance
    assert kept["exclusions"]["gpqa-diamond"]["snapshot_sha256"] == snapshot.snapshot_sha256
    assert kept["exclusions"]["gpqa-diamond"]["references"] == [f"dataset:{quick.id}", f"run:{run.id}"]
    assert kept["evaluation_roles"] == {"gpqa-diamond": "holdout"}
    assert "finite local claim" in kept["disclosures"][0]

    everything = snapshot_of(Ctx(str(store.root)), [holdout.id], [run.id])
    (tmp_path / "history.json").write_text(json.dumps(everything.as_dict()))
    before = list_datasets(store)
    with pytest.raises(SrBenchError) as caught:
        prepare(store, with_history)
    assert "needs 158 tasks, the source has 198" in caught.value.message
    assert "0 are left after 40 for quick and 158 excluded by history" in caught.value.message
    assert list_datasets(store) == before
