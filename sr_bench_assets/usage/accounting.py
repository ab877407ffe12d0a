"""Usage reconciliation of a run: every call is checked against its retained reply, the findings are sealed.

Repeating it changes nothing: equal facts give the same ledger bytes, and with them the same hash and version.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from resources.errors import NotFound, SrBenchError
from resources.journal.connection import Journal
from resources.journal.money import decimal_text
from resources.journal.runs import Run, get_run
from resources.journal.seals import add_seal
from resources.store import Store
from resources.targets import Target
from sr_bench_assets.plans.manifest import FrozenPlan
from sr_bench_assets.plans.plan_store import get_plan
from sr_bench_assets.results.facts import load_calls
from sr_bench_assets.results.scope import RunScopeCells, partitions_of
from sr_bench_assets.usage.amounts import add_up
from sr_bench_assets.usage.call_accounting import decimal_or_none, recorded_accounting
from sr_bench_assets.usage.call_entry import call_entry
from sr_bench_assets.usage.evidence_reader import EvidenceReader
from sr_bench_assets.usage.ledger import (
    LEDGER_SCHEMA,
    SEAL_KIND,
    Ledger,
    ledger_bytes,
    load_ledgers,
    summary,
)

RULES_VERSION = 1
"""Changes when the same evidence gives another finding; old ledgers stay, a new version is appended."""


def reconcile_run(store: Store, journal: Journal, run_id: str) -> dict[str, Any]:
    """Reconcile all partitions of a terminal live run; returns the summary that reports show.

    Raises NotFound, or SrBenchError for a run that still works or generated nothing.
    """
    run = get_run(journal, run_id)
    if run.mode != "live":
        raise SrBenchError(
            f"Run {run.id} is a {run.mode} run: it generated nothing.",
            code="not_live",
            field="mode",
            mend="Reconcile a live run.",
        )
    if not run.is_terminal:
        raise SrBenchError(
            f"Run {run.id} is {run.status}; usage is reconciled when it has ended.",
            code="not_terminal",
            field="status",
            mend=f"Wait for it, or `sr-bench cancel {run.id}`.",
        )
    plan = get_plan(store, run.plan_sha256)
    names = partitions_of(plan, RunScopeCells.parse(run.scope))
    ledgers = {name: _reconcile(store, journal, run, plan, name) for name in names}
    return {"run_id": run.id, "plan_sha256": run.plan_sha256, **summary(ledgers)}


def reconcile_partition(store: Store, journal: Journal, run_id: str, benchmark: str) -> Ledger:
    """Reconcile one partition whose cells have all ended; the run itself may go on with others."""
    run = get_run(journal, run_id)
    plan = get_plan(store, run.plan_sha256)
    if benchmark not in plan.benchmarks:
        raise NotFound(f"Run {run.id} has no benchmark {benchmark}.", field="benchmark")
    return _reconcile(store, journal, run, plan, benchmark)


def _reconcile(store: Store, journal: Journal, run: Run, plan: FrozenPlan, benchmark: str) -> Ledger:
    rows = list(load_calls(store, journal, run.id, benchmark).iter_rows(named=True))
    with EvidenceReader(store, journal, run.id) as evidence:
        entries = [
            call_entry(row, evidence.retained(row), target_of(plan, row["target_id"], row["role"]))
            for row in rows
            if not _without_spend(row)
        ]
    document = ledger_document(run, benchmark, rows, entries)
    sha256 = store.objects.put(ledger_bytes(document))
    add_seal(journal, run.id, benchmark, SEAL_KIND, sha256, data={"counts": document["counts"]})
    return load_ledgers(store, journal, run.id, [benchmark])[benchmark]


def ledger_document(
    run: Run, benchmark: str, rows: Iterable[Mapping[str, Any]], entries: list[dict[str, Any]]
) -> dict[str, Any]:
    """The ledger of one partition; pure, and without any time of making."""
    calls = list(rows)
    by_id = {entry["id"]: entry for entry in entries}
    outcomes = Counter(entry["outcome"] for entry in entries)
    old = add_up(((recorded_accounting(row).cost_usd, None) for row in calls), "calls")
    new = add_up(((_new_cost(row, by_id.get(row["id"])), None) for row in calls), "calls")
    return {
        "schema": LEDGER_SCHEMA,
        "rules_version": RULES_VERSION,
        "run_id": run.id,
        "plan_sha256": run.plan_sha256,
        "partition": benchmark,
        "counts": {
            "calls": len(calls),
            "verified": outcomes["verified"],
            "corrected": outcomes["corrected"],
            "unknown": outcomes["unknown"],
            "changed": sum(entry["changed"] for entry in entries),
            "kept_receipts": sum(entry["kept"] for entry in entries),
            "without_spend": len(calls) - len(entries),
        },
        "unknown_reasons": dict(Counter(entry["reason"] for entry in entries if entry["reason"])),
        "old_known_cost_usd": decimal_text(old.known_usd),
        "new_known_cost_usd": decimal_text(new.known_usd),
        "calls": entries,
    }


def target_of(plan: FrozenPlan, target_id: str, role: str) -> Target:
    """The endpoint that a call went to: the cell's own target, or the plan's judge or simulator."""
    auxiliary = {"judge": plan.auxiliary_targets.judge, "simulator": plan.auxiliary_targets.simulator}.get(
        role
    )
    if auxiliary is not None:
        return auxiliary
    return next(target for target in plan.targets if target.id == target_id)


def _new_cost(row: Mapping[str, Any], entry: Mapping[str, Any] | None) -> Decimal | None:
    return recorded_accounting(row).cost_usd if entry is None else decimal_or_none(entry["cost_usd"])


def _without_spend(row: Mapping[str, Any]) -> bool:
    """Refused before generating, or never sent: nothing was generated, so there is nothing to reconcile."""
    return row["outcome"] in ("refused", "failed") and row["spent_pico"] == 0
