"""What must hold after any number of kills, looked up in the journal, the evidence and the server's own records."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from resources.journal.calls import CallRow, list_calls
from resources.journal.connection import Journal
from resources.journal.money import pico_from_usd
from resources.journal.results import ResultRow, list_results
from resources.journal.run_record import Cell, Run
from resources.journal.runs import claimed_cells, get_run
from resources.store import Store
from sr_bench_assets.usage.rebuild import rebuild_run

Kept = dict[tuple[str, Cell], ResultRow]
"""Results of (run, cell) as a look at the journal found them."""


@dataclass
class Lineage:
    """A run and the children that continued it, in order, and the results that were seen after each kill."""

    cells: Sequence[Cell]
    runs: list[str] = field(default_factory=list[str])
    seen: Kept = field(default_factory=lambda: dict[tuple[str, Cell], ResultRow]())


@dataclass
class Audit:
    """What was counted, and every broken promise in words."""

    problems: list[str] = field(default_factory=list[str])
    cells: Counter[str] = field(default_factory=Counter[str])
    """By final state; their sum is the number of planned cells."""
    runs: Counter[str] = field(default_factory=Counter[str])
    calls: int = 0
    seen_results: int = 0
    lost_results: int = 0
    rebuilt: int = 0
    """Calls whose derived record was rebuilt from the evidence and equals the journal's."""
    sent: int = 0
    """Requests by the server's count."""
    resends: int = 0
    ambiguous: Counter[str] = field(default_factory=Counter[str])
    """How far calls without a known end had come, by the server's records."""
    overspent: int = 0

    def add(self, other: Audit) -> None:
        """Take the counts and problems of another audit in."""
        for part in fields(self):
            setattr(self, part.name, getattr(self, part.name) + getattr(other, part.name))


def completed_now(journal: Journal, run_id: str) -> Kept:
    """Results of the run that are durable now."""
    return {
        (run_id, (row.case_id, row.target_id)): row
        for row in list_results(journal, run_id)
        if row.status in ("completed", "failed")
    }


def audit(
    store: Store, journal: Journal, lineages: Sequence[Lineage], requests: Sequence[Mapping[str, Any]]
) -> Audit:
    """Check all lineages (which have come to rest) against the journal and the server's `requests`."""
    found = Audit(sent=len(requests))
    by_digest: dict[str, list[CallRow]] = defaultdict(list)
    for lineage in lineages:
        _check_lineage(store, journal, lineage, found, by_digest)
    _check_server(requests, by_digest, found)
    return found


def _check_lineage(
    store: Store,
    journal: Journal,
    lineage: Lineage,
    found: Audit,
    by_digest: dict[str, list[CallRow]],
) -> None:
    ended: dict[Cell, list[ResultRow]] = defaultdict(list)
    generated: Counter[Cell] = Counter()
    now: Kept = {}
    for run_id in lineage.runs:
        run = get_run(journal, run_id)
        found.runs[run.status] += 1
        rows = list_calls(journal, run_id)
        found.calls += len(rows)
        for row in rows:
            by_digest[row.request_sha256].append(row)
        generated.update({(row.case_id, row.target_id) for row in rows if row.outcome != "refused"})
        for result in list_results(journal, run_id):
            cell = (result.case_id, result.target_id)
            ended[cell].append(result)
            now[run_id, cell] = result
        _check_account(run, rows, found)
        _check_claims(journal, run_id, now, found)
        rebuilt = rebuild_run(store, journal, run_id)
        found.rebuilt += rebuilt["equal"]
        if rebuilt["different"]:
            found.problems.append(f"{run_id}: evidence differs: {rebuilt['different'][:3]}")
    for cell in lineage.cells:
        states = [row.status for row in ended[cell]]
        if len(states) > 1:
            found.problems.append(f"{lineage.runs[0]}: {cell} ended {len(states)} times: {states}")
        if generated[cell] > 1:
            found.problems.append(f"{lineage.runs[0]}: {cell} was sent by {generated[cell]} runs")
        if not states and generated[cell]:
            found.problems.append(f"{lineage.runs[0]}: {cell} was sent and has no state")
        found.cells[states[0] if states else "undispatched"] += 1
    found.seen_results += len(lineage.seen)
    for place, row in lineage.seen.items():
        if now.get(place) != row:
            found.lost_results += 1
            found.problems.append(f"{place}: the result was {row}, now it is {now.get(place)}")


def _check_account(run: Run, rows: Sequence[CallRow], found: Audit) -> None:
    """Reservations, spend and budget of an ended run."""
    if not run.is_terminal:
        found.problems.append(f"{run.id} is still {run.status}")
    reserved, spent, unknown, budget = (
        pico_from_usd(amount) for amount in (run.reserved_usd, run.spent_usd, run.unknown_usd, run.budget_usd)
    )
    known = sum(row.spent_pico or 0 for row in rows)
    kept = sum(row.reserved_pico for row in rows if row.spent_pico is None)
    if (reserved, spent, unknown) != (0, known, kept):
        found.problems.append(
            f"{run.id}: account {(reserved, spent, unknown)}, its calls say {(0, known, kept)}"
        )
    if spent + unknown > budget:
        found.overspent += 1
        found.problems.append(f"{run.id}: {spent + unknown} of {budget} pico-dollars spent")


def _check_claims(journal: Journal, run_id: str, now: Kept, found: Audit) -> None:
    """A child takes over only what its parent has not ended."""
    found.problems.extend(
        f"{cell} of {run_id} was taken over by {child} although it had ended"
        for cell, child in claimed_cells(journal, run_id).items()
        if (run_id, cell) in now
    )


def _check_server(
    requests: Sequence[Mapping[str, Any]], by_digest: Mapping[str, Sequence[CallRow]], found: Audit
) -> None:
    """The server's records against the journal: nothing unjournaled, nothing twice, nothing forgotten."""
    received: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for record in requests:
        received[record["digest"]].append(record)
        found.resends += bool(record["resend"])
    for digest, records in received.items():
        rows = by_digest.get(digest, [])
        if len(records) > len(rows):
            found.problems.append(f"{digest}: {len(records)} requests, {len(rows)} dispatch records")
        finished = [record for record in records if record["outcome"] != "refused"]
        if len(finished) > 1:
            found.problems.append(f"{digest}: {len(finished)} requests that were not refused")
    for digest, rows in by_digest.items():
        for row in rows:
            if row.outcome is None:
                found.ambiguous[_how_far(received.get(digest, []))] += 1
    if found.resends:
        found.problems.append(f"the server counted {found.resends} re-sends")


def _how_far(records: Sequence[Mapping[str, Any]]) -> str:
    last = records[-1] if records else None
    if last is None or last["outcome"] == "refused":
        return "dispatch durable, request not out"
    if last["outcome"] == "completed":
        return "reply delivered, its end not durable"
    if last["first_token_at"] is None:
        return "sent, no token yet"
    return "mid-stream"
