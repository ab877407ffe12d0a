"""`benchmark_report` per partition and the `scorecard` of a profile."""

# Dagster reads the annotation of `context` as a class: no `from __future__ import annotations` here.
from typing import Any

import orjson
from dagster import (
    AssetExecutionContext,
    DataVersion,
    MaterializeResult,
    MetadataValue,
    asset,
)

from resources.dagster_resources import RunScope, StoreResource
from resources.errors import NotFound
from resources.journal.connection import Journal
from resources.journal.runs import Run, get_run, list_runs
from resources.journal.seals import add_seal
from resources.store import Store
from sr_bench_assets.partitions import (
    benchmark_of,
    benchmark_profile_partitions,
    profile_partitions,
)
from sr_bench_assets.reports.checks import (
    CHECK_SPECS,
    SCORECARD_CHECK_SPECS,
    check_report,
    check_scorecard,
)
from sr_bench_assets.reports.markdown import figures_table, report_markdown, scorecard_table
from sr_bench_assets.reports.report import build_report
from sr_bench_assets.reports.scorecard import build_scorecard
from sr_bench_assets.results.run_context import run_in_partition

REPORT_SEAL = "report"
SCORECARD_PARTITION = "*"


@asset(
    partitions_def=benchmark_profile_partitions,
    deps=["reconciled_usage"],
    code_version="1",
    group_name="evaluation",
    kinds={"json", "markdown"},
    check_specs=CHECK_SPECS,
    description="Accuracy with intervals, tokens, costs and latency of every target on one benchmark, over all "
    "planned cases. `sr-bench compare` says what the differences mean. Sends nothing.",
)
def benchmark_report(
    context: AssetExecutionContext, run_scope: RunScope, store: StoreResource
) -> MaterializeResult:
    opened, journal = store.open_journal()
    benchmark = benchmark_of(context)
    run = run_in_partition(context, run_scope, opened, journal)
    report = build_report(opened, journal, run.id, benchmark)
    sha256 = _seal(opened, journal, run, benchmark, report)
    return MaterializeResult(
        data_version=DataVersion(sha256),
        metadata={
            "figures": MetadataValue.md(figures_table(report)),
            "report": MetadataValue.md(report_markdown(report)),
            **_plotted(report),
            "evidence_of": "simulated or recorded models (lab)" if report["lab"] else "the targets' models",
            "complete": report["complete"],
            "run_id": run.id,
            "plan_sha256": run.plan_sha256,
            "object_sha256": sha256,
        },
        check_results=check_report(report),
    )


@asset(
    partitions_def=profile_partitions,
    # Dagster maps each benchmark × profile partition to its profile by itself.
    deps=["benchmark_report"],
    code_version="1",
    group_name="evaluation",
    kinds={"json", "markdown"},
    check_specs=SCORECARD_CHECK_SPECS,
    description="All benchmarks of one run side by side: macro accuracy, and the full score when all nine are there.",
)
def scorecard(context: AssetExecutionContext, run_scope: RunScope, store: StoreResource) -> MaterializeResult:
    opened, journal = store.open_journal()
    run = _scored_run(journal, run_scope, context.partition_key)
    card = build_scorecard(build_report(opened, journal, run.id))
    sha256 = _seal(opened, journal, run, SCORECARD_PARTITION, card)
    return MaterializeResult(
        data_version=DataVersion(sha256),
        metadata={
            "scorecard": MetadataValue.md(scorecard_table(card)),
            "run_id": run.id,
            "run_status": run.status,
            "plan_sha256": run.plan_sha256,
            "object_sha256": sha256,
        },
        check_results=check_scorecard(card),
    )


def _plotted(report: dict[str, Any]) -> dict[str, MetadataValue]:
    """Accuracy and cost by target as plain numbers, which Dagster plots over materializations."""
    figures: dict[str, MetadataValue] = {}
    for target in report["targets"]:
        for name, value in (("accuracy", target["accuracy"]), ("cost_usd", target["total_cost_usd"])):
            if value is not None:
                figures[f"{name} {target['id']}"] = MetadataValue.float(round(float(value), 6))
    return figures


def _seal(store: Store, journal: Journal, run: Run, partition: str, document: dict[str, Any]) -> str:
    """Keep a report under its hash; equal facts give equal bytes and so the same hash and version."""
    sha256 = store.objects.put(orjson.dumps(document))
    add_seal(journal, run.id, partition, REPORT_SEAL, sha256)
    return sha256


def _scored_run(journal: Journal, run_scope: RunScope, profile: str) -> Run:
    if run_scope.run_id:
        return get_run(journal, run_scope.run_id)
    for run in list_runs(journal):
        if run.profile == profile and run.is_terminal and run_scope.plan_sha256 in ("", run.plan_sha256):
            return run
    raise NotFound(
        f"There is no ended run of profile {profile}.",
        mend="Materialize benchmark_report of a partition, or `sr-bench run` a plan of this profile.",
    )
