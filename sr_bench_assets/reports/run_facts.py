"""Everything a report or comparison needs of one run, loaded once: plan, cells, calls, accounting, seals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from resources.errors import NotFound
from resources.journal.connection import Journal
from resources.journal.runs import Run, get_run
from resources.journal.seals import list_seals
from resources.store import Store
from sr_bench_assets.plans.manifest import FrozenPlan
from sr_bench_assets.plans.plan_store import get_plan
from sr_bench_assets.reports.facts import (
    CALL_COLUMNS,
    CELL_COLUMNS,
    CallFact,
    CellFact,
    call_facts,
    cell_facts,
)
from sr_bench_assets.results.scope import RunScopeCells, partitions_of


@dataclass(frozen=True)
class RunFacts:
    """One run, or one partition of it."""

    run: Run
    plan: FrozenPlan
    scope: RunScopeCells
    partition: str | None
    """The benchmark when only one is meant; None: the whole run."""
    benchmarks: tuple[str, ...]
    """Benchmarks in scope, in the plan's order."""
    cells: Sequence[CellFact]
    calls: Sequence[CallFact]
    sealed: Mapping[str, Mapping[str, str]]
    """Benchmark → kind of artifact → SHA-256."""
    accounting: Mapping[str, Any] | None
    """What the report tells of the usage reconciliation; None when there is none."""

    @property
    def lab(self) -> bool:
        """True when any call was answered by the lab gateway."""
        return any(call.lab for call in self.calls)


SEALED_KINDS = ("results", "calls", "evidence")
"""Sealed facts that a report stands on; a sealed report is none of them."""


def load_run_facts(store: Store, journal: Journal, run_id: str, benchmark: str | None = None) -> RunFacts:
    """The facts of a run (a unique prefix of its id will do), or of its partition `benchmark`.

    Calls come with reconciled usage and cost where a reconciliation exists. Raises NotFound.
    """
    from sr_bench_assets.results.facts import load_calls, load_results
    from sr_bench_assets.usage.ledger import load_ledgers, summary

    run = get_run(journal, run_id)
    plan = get_plan(store, run.plan_sha256)
    scope = RunScopeCells.parse(run.scope)
    covered = partitions_of(plan, scope)
    if benchmark is not None and benchmark not in covered:
        raise NotFound(
            f"Run {run.id} has no benchmark {benchmark}.",
            field="benchmark",
            mend=f"It covers {', '.join(covered)}.",
        )
    kept = tuple(covered if benchmark is None else [benchmark])
    ledgers = load_ledgers(store, journal, run.id, kept)
    results = load_results(store, journal, run.id, benchmark)
    calls = load_calls(store, journal, run.id, benchmark)
    overrides = {call_id: entry for ledger in ledgers.values() for call_id, entry in ledger.overrides.items()}
    return RunFacts(
        run=run,
        plan=plan,
        scope=scope,
        partition=benchmark,
        benchmarks=kept,
        cells=cell_facts(results.select(CELL_COLUMNS).rows(named=True)),
        calls=call_facts(calls.select(CALL_COLUMNS).rows(named=True), overrides),
        sealed=_sealed(journal, run.id, kept),
        accounting=summary(ledgers) if ledgers else None,
    )


def _sealed(journal: Journal, run_id: str, benchmarks: Sequence[str]) -> dict[str, dict[str, str]]:
    """Benchmark → kind → hash of the newest version."""
    found: dict[str, dict[str, str]] = {}
    for seal in list_seals(journal, run_id):
        if seal.partition in benchmarks and seal.kind in SEALED_KINDS:
            found.setdefault(seal.partition, {})[seal.kind] = seal.sha256
    return found
