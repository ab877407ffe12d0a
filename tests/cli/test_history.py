"""A run is history by its frozen plan: every planned task counts, whatever became of it."""

from __future__ import annotations

import csv
from decimal import Decimal
from pathlib import Path

from cli.history import snapshot_of
from cli.output import Ctx
from resources.journal.connection import open_journal
from resources.journal.runs import create_run
from resources.store import Store
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
        writer.writerows([f"After {n}?", n + 1, n, n + 2, n + 3, n % 3] for n in range(60))
    store = Store.open(tmp_path / "store")
    quick = prepare(
        store,
        PreparationRequest(
            benchmarks=("gpqa-diamond",),
            profile="quick",
            source_path=str(path),
            revision="v1",
            source_partition="diamond",
        ),
    )
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
