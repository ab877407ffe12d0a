"""Dispatches, ends and results with defaults, for tests that care about one or two of their fields."""

from __future__ import annotations

from typing import Any

from resources.journal.calls import CallEnd, Dispatch
from resources.journal.results import ResultRow


def a_dispatch(case: str | int = 0, **changes: Any) -> Dispatch:
    """A subject call of target `t` that reserves 100 pico-dollars and 10 tokens."""
    fields: dict[str, Any] = {
        "benchmark": "mmlu-pro",
        "case_id": f"mmlu-pro/{case}",
        "target_id": "t",
        "role": "subject",
        "step": 0,
        "attempt": 0,
        "request_sha256": "b" * 64,
        "reserved_pico": 100,
        "reserved_tokens": 10,
    }
    return Dispatch(**{**fields, **changes})


def an_end(dispatch: Dispatch, **changes: Any) -> CallEnd:
    """A completed call of known cost (40 pico-dollars) with three bytes of evidence."""
    fields: dict[str, Any] = {
        "call_id": dispatch.call_id,
        "benchmark": dispatch.benchmark,
        "outcome": "completed",
        "spent_pico": 40,
        "http_status": 200,
        "evidence": b"abc",
        "evidence_sha256": "e" * 64,
    }
    return CallEnd(**{**fields, **changes})


def a_result(dispatch: Dispatch, **changes: Any) -> ResultRow:
    """A correct answer to the dispatch's case."""
    fields: dict[str, Any] = {
        "case_id": dispatch.case_id,
        "target_id": dispatch.target_id,
        "benchmark": dispatch.benchmark,
        "status": "completed",
        "answer": "B",
        "answer_status": "parsed",
        "correct": True,
        "call_count": 1,
    }
    return ResultRow(**{**fields, **changes})
