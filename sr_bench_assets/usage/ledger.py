"""The accounting ledger of one partition: an append-only, content-addressed correction beside the journal.

The journal's own calls and results never change; reports read a ledger's entries in their place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from resources.canonical import content_hash
from resources.journal.connection import Journal
from resources.journal.money import decimal_text
from resources.journal.seals import Seal, list_seals
from resources.store import Store
from sr_bench_assets.usage.amounts import Amount, total
from sr_bench_assets.usage.call_accounting import CallAccounting, bucket_tuple, decimal_or_none

LEDGER_SCHEMA = "sr-bench-accounting-1"
SEAL_KIND = "accounting"


@dataclass(frozen=True)
class Ledger:
    """A sealed reconciliation of one partition."""

    seal: Seal
    document: Mapping[str, Any]

    @property
    def counts(self) -> Mapping[str, int]:
        """Calls by outcome: calls, verified, corrected, unknown, changed, without_spend, kept_receipts."""
        return self.document["counts"]

    @property
    def overrides(self) -> dict[str, CallAccounting]:
        """Call id → usage and cost that hold in place of the recorded ones."""
        return {
            entry["id"]: CallAccounting(
                tokens=bucket_tuple(entry["usage"]),
                cost_usd=decimal_or_none(entry["cost_usd"]),
                cost_reason=entry["cost_reason"],
                cache_neutral_cost_usd=decimal_or_none(entry["cache_neutral_cost_usd"]),
            )
            for entry in self.document["calls"]
            if not entry["kept"]
        }


def ledger_bytes(document: Mapping[str, Any]) -> bytes:
    """The bytes that are stored and hashed: sorted keys, no time of making; equal facts give equal bytes."""
    return orjson.dumps(document, option=orjson.OPT_SORT_KEYS)


def load_ledgers(store: Store, journal: Journal, run_id: str, benchmarks: Iterable[str]) -> dict[str, Ledger]:
    """The newest ledger of each partition that has one, verified against its hash."""
    # In order of version, so that the newest stays.
    seals = {seal.partition: seal for seal in list_seals(journal, run_id, kind=SEAL_KIND)}
    return {
        name: Ledger(seals[name], orjson.loads(store.objects.get(seals[name].sha256)))
        for name in benchmarks
        if name in seals
    }


def ledgers_hash(ledgers: Mapping[str, Ledger]) -> str:
    """The hash of a run's correction: that of its one ledger, else of all partitions' hashes together."""
    pairs = [[name, ledger.seal.sha256] for name, ledger in sorted(ledgers.items())]
    return pairs[0][1] if len(pairs) == 1 else content_hash(pairs)


def summary(ledgers: Mapping[str, Ledger]) -> dict[str, Any]:
    """What a report tells of the correction: hash, time, counts, old and new known spend."""
    counts: dict[str, int] = {}
    for ledger in ledgers.values():
        for name, number in ledger.counts.items():
            counts[name] = counts.get(name, 0) + number
    return {
        "sha256": ledgers_hash(ledgers),
        "created_at": max(ledger.seal.created_at for ledger in ledgers.values()),
        "counts": counts,
        "unknown_reasons": _reasons(ledgers),
        "old_known_cost_usd": _spend(ledgers, "old_known_cost_usd"),
        "new_known_cost_usd": _spend(ledgers, "new_known_cost_usd"),
        "partitions": {
            name: {
                "version": ledger.seal.version,
                "sha256": ledger.seal.sha256,
                "created_at": ledger.seal.created_at,
                "counts": dict(ledger.counts),
                "old_known_cost_usd": ledger.document["old_known_cost_usd"],
                "new_known_cost_usd": ledger.document["new_known_cost_usd"],
            }
            for name, ledger in ledgers.items()
        },
    }


def _reasons(ledgers: Mapping[str, Ledger]) -> dict[str, int]:
    reasons: dict[str, int] = {}
    for ledger in ledgers.values():
        for name, number in ledger.document["unknown_reasons"].items():
            reasons[name] = reasons.get(name, 0) + number
    return dict(sorted(reasons.items()))


def _spend(ledgers: Mapping[str, Ledger], name: str) -> str | None:
    parts = (decimal_or_none(ledger.document[name]) for ledger in ledgers.values())
    return decimal_text(total(Amount(part, part, None) for part in parts if part is not None).known_usd)
