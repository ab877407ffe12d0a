"""Named history: from ids of datasets and runs to an exclusion snapshot."""

from __future__ import annotations

from collections.abc import Sequence

from cli.output import Ctx
from sr_bench_assets.datasets.artifact import load_manifest
from sr_bench_assets.datasets.exclusions import Reference, Snapshot, compile_snapshot


def snapshot_of(obj: Ctx, dataset_ids: Sequence[str], run_ids: Sequence[str]) -> Snapshot:
    """Compile the snapshot of exactly these; a run counts with every task of its frozen plan."""
    store = obj.open_store()
    references: list[Reference] = []
    for dataset_id in dataset_ids:
        manifest = load_manifest(store, dataset_id)
        references.append(Reference("dataset", manifest.id, manifest.id, manifest))
    if run_ids:
        from resources.journal.connection import open_journal
        from resources.journal.runs import get_run
        from sr_bench_assets.plans.plan_store import get_plan

        journal = open_journal(store)
        for run_id in run_ids:
            run = get_run(journal, run_id)
            plan = get_plan(store, run.plan_sha256)
            manifest = load_manifest(store, plan.dataset_id)
            references.append(Reference("run", run.id, plan.plan_sha256, manifest))
    return compile_snapshot(references)
