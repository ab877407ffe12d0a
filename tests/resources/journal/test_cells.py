"""Briefs of a run's cells, on both databases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from resources.journal.calls import CallEnd, Dispatch
from resources.journal.cells import CallBrief, ResultBrief, call_briefs, result_briefs
from resources.journal.connection import Journal
from resources.journal.results import ResultRow
from resources.journal.runs import Run
from resources.journal.writer import JournalWriter
from resources.store import Store


def _dispatch(case_id: str, attempt: int = 0) -> Dispatch:
    return Dispatch("mmlu-pro", case_id, "a", "subject", 0, attempt, request_sha256="0" * 64, reserved_pico=5)


async def test_briefs(store: Store, journal: Journal, new_run: Callable[..., Run]) -> None:
    run = new_run()
    other = new_run(partitions=())
    writer = JournalWriter(journal, run.id, store.evidence_dir(run.id))
    try:
        refused, second, open_call = (
            _dispatch("mmlu-pro/1"),
            _dispatch("mmlu-pro/1", 1),
            _dispatch("mmlu-pro/2"),
        )
        await writer.dispatch(refused)
        await writer.finish(CallEnd(refused.call_id, "mmlu-pro", "refused", 0, http_status=429))
        await writer.dispatch(second)
        tokens: dict[str, Any] = {
            "input_tokens": 4,
            "cached_input_tokens": 0,
            "cache_write_tokens": 0,
            "output_tokens": 2,
        }
        end = CallEnd(second.call_id, "mmlu-pro", "failed", None, failure="length", http_status=200, **tokens)
        row = ResultRow("mmlu-pro/1", "a", "mmlu-pro", "failed", failure="length", call_count=2)
        await writer.finish(end, row)
        await writer.dispatch(open_call)
    finally:
        writer.close()
    assert call_briefs(journal, run.id) == {
        ("mmlu-pro/1", "a"): [
            CallBrief("refused", None, 429, spend_known=True, usage_known=False),
            CallBrief("failed", "length", 200, spend_known=False, usage_known=True),
        ],
        ("mmlu-pro/2", "a"): [CallBrief(None, None, None, spend_known=False, usage_known=False)],
    }
    assert result_briefs(journal, run.id) == {
        ("mmlu-pro/1", "a"): ResultBrief("mmlu-pro", "failed", "length")
    }
    assert (call_briefs(journal, other.id), result_briefs(journal, other.id)) == ({}, {})
