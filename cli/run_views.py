"""The JSON rows of `show`: what a reader may see of results, calls and events. Never a label."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from resources.journal.money import decimal_text

if TYPE_CHECKING:
    from resources.journal.calls import CallRow
    from resources.journal.connection import Journal
    from resources.journal.progress import Progress
    from resources.journal.results import ResultRow
    from resources.journal.runs import Event, Run


def run_view(run: Run, state: Progress) -> dict[str, Any]:
    """One run with its progress; the states of its cells add up to `total`."""
    return {
        "id": run.id,
        "name": run.name,
        "status": run.status,
        "reason": run.reason,
        "mode": run.mode,
        "profile": run.profile,
        "plan_sha256": run.plan_sha256,
        "parent_run_id": run.parent_run_id,
        "created_at": run.created_at,
        "updated_at": run.updated_at,
        "progress": {
            "total": state.total,
            "completed": state.completed,
            "failed": state.failed,
            "running": state.running,
            "undispatched": state.undispatched,
            "ambiguous": state.ambiguous,
        },
        "known_cost_usd": decimal_text(run.spent_usd),
        "reserved_usd": decimal_text(run.reserved_usd),
        "unknown_cost_reserved_usd": decimal_text(run.unknown_usd),
        "budget_usd": decimal_text(run.budget_usd),
    }


def result_view(row: ResultRow) -> dict[str, Any]:
    """One cell's end."""
    return {
        "case_id": row.case_id,
        "target_id": row.target_id,
        "benchmark": row.benchmark,
        "status": row.status,
        "answer": row.answer,
        "answer_status": row.answer_status,
        "strict_format": row.strict_format,
        "correct": row.correct,
        "score": row.score,
        "failure": row.failure,
        "call_count": row.call_count,
        "cost_usd": decimal_text(row.cost_usd),
        "latency_s": row.latency_s,
    }


def call_view(row: CallRow) -> dict[str, Any]:
    """One call: journal columns and the members of its derived record, by the names of the vectors."""
    record = row.record
    return {
        "id": row.id,
        "case_id": row.case_id,
        "target_id": row.target_id,
        "role": row.role,
        "step": row.step,
        "attempt": row.attempt,
        "call_status": _call_status(row),
        "refused": row.outcome == "refused",
        "failure": row.failure,
        "http_status": row.http_status,
        "text": record.get("text"),
        "reasoning": record.get("reasoning"),
        "final": record.get("final"),
        "finish_reason": row.finish_reason,
        "output_complete": row.output_complete,
        "usage": row.usage,
        "tool_calls": record.get("tool_calls", []),
        "model": row.model,
        "flags": record.get("flags", []),
        "cost_usd": decimal_text(row.cost_usd),
        "cost_usd_reason": row.cost_reason,
        "cache_neutral_cost_usd": decimal_text(row.cache_neutral_cost_usd),
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


def _call_status(row: CallRow) -> str:
    if row.outcome is None:
        return "running" if row.failure is None else "ambiguous"
    return "completed" if row.outcome == "completed" else "failed"


def event_view(row: Event) -> dict[str, Any]:
    """One line of the run's log."""
    return {"id": row.id, "at": row.at, "kind": row.kind, "message": row.message, "data": row.data}


def progress_rows(journal: Journal, run_id: str) -> list[dict[str, Any]]:
    """Cells begun and spend per benchmark and target."""
    from resources.journal.progress import progress_by

    return [
        {
            "benchmark": benchmark,
            "target_id": target_id,
            "completed": state.completed,
            "failed": state.failed,
            "running": state.running,
            "ambiguous": state.ambiguous,
            "calls": state.calls,
            "known_cost_usd": decimal_text(state.spent_usd),
            "calls_of_unknown_cost": state.unknown_spend_calls,
        }
        for (benchmark, target_id), state in progress_by(journal, run_id).items()
    ]
