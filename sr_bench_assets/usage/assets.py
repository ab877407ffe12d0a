"""`reconciled_usage`: recorded usage and cost verified against the retained streams."""

# Dagster reads the annotation of `context` as a class: no `from __future__ import annotations` here.
from dagster import AssetExecutionContext, DataVersion, MaterializeResult, MetadataValue, asset

from resources.dagster_resources import RunScope, StoreResource
from sr_bench_assets.partitions import benchmark_of, benchmark_profile_partitions
from sr_bench_assets.results.run_context import run_in_partition
from sr_bench_assets.usage.accounting import reconcile_partition
from sr_bench_assets.usage.checks import CHECK_SPECS, check_ledger
from sr_bench_assets.usage.tables import ledger_markdown


@asset(
    partitions_def=benchmark_profile_partitions,
    deps=["target_results"],
    code_version="1",
    group_name="evaluation",
    kinds={"json"},
    check_specs=CHECK_SPECS,
    description="What each call used and cost, read again from its own retained stream: a versioned, idempotent "
    "accounting beside the journal, which never changes. Sends nothing.",
)
def reconciled_usage(
    context: AssetExecutionContext, run_scope: RunScope, store: StoreResource
) -> MaterializeResult:
    opened, journal = store.open_journal()
    benchmark = benchmark_of(context)
    run = run_in_partition(context, run_scope, opened, journal)
    ledger = reconcile_partition(opened, journal, run.id, benchmark)
    document = ledger.document
    return MaterializeResult(
        data_version=DataVersion(ledger.seal.sha256),
        metadata={
            "accounting": MetadataValue.md(ledger_markdown(ledger)),
            **{name: ledger.counts[name] for name in ("calls", "verified", "corrected", "unknown")},
            "known_cost_usd": float(document["new_known_cost_usd"]),
            "run_id": run.id,
            "version": ledger.seal.version,
            "object_sha256": ledger.seal.sha256,
        },
        check_results=check_ledger(ledger),
    )
