"""The JSON rows of `show`: what a reader may see of results, calls and events. Never a label."""

from __future__ import annotations

from typing import Any

import orjson

from resources.journal.connection import Journal
from resources.journal.runs import progress_by

_CALL_STATUS = {"completed": "completed", "failed": "failed", "refused": "failed"}


def _loaded(text: str | None, default: Any = None) -> Any:
    return default if text is None else orjson.loads(text)


def result_view(row: Any) -> dict[str, Any]:
    """One cell's end."""
    return {
        "case_id": row.case_id,
        "target_id": row.target_id,
        "benchmark": row.benchmark,
        "status": row.status,
        "answer": _loaded(row.answer),
        "answer_status": row.answer_status,
        "strict_format": row.strict_format,
        "correct": row.correct,
        "score": row.score,
        "failure": row.failure,
        "call_count": row.call_count,
        "cost_usd": row.cost_usd,
        "latency_s": row.latency_s,
    }


def call_view(row: Any) -> dict[str, Any]:
    """One call: journal columns and the members of its derived record, by the names of the vectors."""
    record = _loaded(row.record, {})
    return {
        "id": row.id,
        "case_id": row.case_id,
        "target_id": row.target_id,
        "role": row.role,
        "step": row.step,
        "attempt": row.attempt,
        "call_status": "running" if row.outcome is None else _CALL_STATUS[row.outcome],
        "refused": row.outcome == "refused",
        "failure": row.failure,
        "http_status": row.http_status,
        "text": record.get("text"),
        "reasoning": record.get("reasoning"),
        "final": record.get("final"),
        "finish_reason": row.finish_reason,
        "output_complete": row.output_complete,
        "usage": _loaded(row.usage),
        "tool_calls": record.get("tool_calls", []),
        "model": row.model,
        "flags": record.get("flags", []),
        "cost_usd": row.cost_usd,
        "cost_usd_reason": row.cost_reason,
        "cache_neutral_cost_usd": row.cache_neutral_cost_usd,
        "ttft_s": row.ttft_s,
        "latency_s": row.latency_s,
        "queue_wait_s": row.queue_wait_s,
        "dispatched_at": row.dispatched_at,
        "finished_at": row.finished_at,
        "selected_model": row.selected_model,
        "decision": row.decision,
        "request_sha256": row.request_sha256,
        "evidence_sha256": row.evidence_sha256,
    }


def event_view(row: Any) -> dict[str, Any]:
    """One line of the run's log."""
    return {"id": row.id, "at": row.at, "kind": row.kind, "message": row.message, "data": row.data}


def progress_rows(journal: Journal, run_id: str) -> list[dict[str, Any]]:
    """Counts and known spend per benchmark and target."""
    return [
        {
            "benchmark": benchmark,
            "target_id": target_id,
            "total": state.total,
            "completed": state.completed,
            "failed": state.failed,
            "running": state.running,
            "undispatched": state.undispatched,
            "ambiguous": state.ambiguous,
            "known_cost_usd": state.known_cost_usd,
        }
        for (benchmark, target_id), state in progress_by(journal, run_id).items()
    ]
