"""A partition's accounting as a table for people."""

from __future__ import annotations

from sr_bench_assets.usage.ledger import Ledger

_LABELS = {
    "verified": "verified against their stream",
    "corrected": "corrected by their stream",
    "unknown": "unknown usage",
    "without_spend": "without spend (refused or never sent)",
    "calls": "all calls",
}


def ledger_markdown(ledger: Ledger) -> str:
    """Calls by how their usage was settled and the known cost before and after; reasons of unknown usage below."""
    counts, document = ledger.counts, ledger.document
    lines = ["| | calls |", "|---|---:|"]
    lines += [f"| {label} | {counts[name]} |" for name, label in _LABELS.items()]
    old, new = document["old_known_cost_usd"], document["new_known_cost_usd"]
    lines += ["", f"Known cost: {old} USD as recorded, {new} USD reconciled."]
    reasons = document["unknown_reasons"]
    if reasons:
        lines += ["", *(f"- {count} × {name}" for name, count in sorted(reasons.items()))]
    return "\n".join(lines)
