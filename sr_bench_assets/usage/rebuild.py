"""Rebuild the derived record of every call from its raw evidence and compare it with the journal's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from resources.errors import IntegrityError, NotFound
from resources.gateway.evidence import rebuild_reply
from resources.gateway.record import Reply
from resources.journal.connection import Journal
from resources.journal.record_text import dump_json, load_json, storable
from resources.journal.runs import get_run
from resources.store import Store
from sr_bench_assets.results.facts import load_calls
from sr_bench_assets.usage.evidence_reader import EvidenceReader

RECORD_PARTS = ("text", "reasoning", "final", "tool_calls", "flags", "done_count")
"""Parts of the derived record that stand in the `record` column."""


def rebuild_run(store: Store, journal: Journal, run_id: str) -> dict[str, Any]:
    """Compare all calls of a run with their evidence; changes nothing.

    Returns {run_id, calls, equal, different: [{call_id, fields}], without_evidence, reasons}: calls that
    never got a byte back have no evidence to rebuild from.
    """
    run = get_run(journal, run_id)
    total = equal = 0
    different: list[dict[str, Any]] = []
    reasons: Counter[str] = Counter()
    with EvidenceReader(store, journal, run.id) as reader:
        for row in load_calls(store, journal, run.id).iter_rows(named=True):
            total += 1
            try:
                evidence = reader.evidence(row)
            except NotFound as error:
                if row["evidence_sha256"] is not None:
                    # Evidence was kept and is gone: that is no smaller fault than a changed byte.
                    different.append({"call_id": row["id"], "fields": ["evidence"], "message": error.message})
                else:
                    reasons["in flight or end unknown" if row["outcome"] is None else "no evidence kept"] += 1
                continue
            except IntegrityError as error:
                different.append({"call_id": row["id"], "fields": ["evidence"], "message": error.message})
                continue
            fields = differences(row, rebuild_reply(evidence))
            if fields:
                different.append({"call_id": row["id"], "fields": fields})
            else:
                equal += 1
    return {
        "run_id": run.id,
        "calls": total,
        "equal": equal,
        "different": different,
        "without_evidence": sum(reasons.values()),
        "reasons": dict(sorted(reasons.items())),
    }


def differences(row: Mapping[str, Any], reply: Reply) -> list[str]:
    """Names of the derived values in a `calls` row that the rebuilt reply does not confirm."""
    rebuilt = reply.as_dict()
    recorded = load_json(row["record"]) or {}
    status = "completed" if row["outcome"] == "completed" else "failed"
    pairs: dict[str, tuple[Any, Any]] = {
        "call_status": (status, reply.call_status),
        "failure": (row["failure"], reply.failure),
        "model": (row["model"], storable(reply.model)),
        "finish_reason": (row["finish_reason"], storable(reply.finish_reason)),
        "output_complete": (row["output_complete"], reply.output_complete),
        "usage": (load_json(row["usage"]), rebuilt["usage"]),
        **{name: (recorded.get(name), _through_json(getattr(reply, name))) for name in RECORD_PARTS},
    }
    return [name for name, (ours, theirs) in pairs.items() if ours != theirs]


def _through_json(value: Any) -> Any:
    """As it reads back from the journal: tuples become lists."""
    return load_json(dump_json(value))
