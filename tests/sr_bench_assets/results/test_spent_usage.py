"""Which tokens the journal's bucket columns hold: all that the call generated, or nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from resources.gateway.outcome import CallOutcome
from resources.gateway.record import Reply
from resources.gateway.router import ChildCall, RouterReceipt
from resources.gateway.usage import MISSING, Usage
from resources.targets import Target
from sr_bench_assets.results.call_records import call_end, spent_usage
from tests.finished_runs import mom, single

STREAM = Usage("known", 116, 0, 0, 33)
CHILDREN = (ChildCall("GLM", Usage("known", 700, 64, 20, 87)), ChildCall("Flash", STREAM))


def outcome(receipt: RouterReceipt | None = None, **reply: Any) -> CallOutcome:
    members: dict[str, Any] = {
        "kind": "completed",
        "reply": replace(Reply("completed", None, usage=STREAM, model="Flash"), **reply),
        "end": "eof",
        "http_status": 200,
        "headers": {},
        "retry_after_s": None,
        "ttft_s": None,
        "latency_s": 0.1,
        "started_at": 0.0,
        "evidence": b"",
        "evidence_sha256": "",
        "receipt": receipt,
        "lab": False,
        "never_sent": False,
    }
    return CallOutcome(**members)


@pytest.mark.parametrize(
    ("receipt", "expected"),
    [
        (None, MISSING),
        (RouterReceipt(selected_model="Flash", inference_call_count=1), STREAM),
        (RouterReceipt(selected_model="Flash", inference_call_count=3), MISSING),
        (RouterReceipt(children=CHILDREN, complete=True), Usage("known", 816, 64, 20, 120)),
        (RouterReceipt(children=CHILDREN, complete=False), MISSING),
        (RouterReceipt(children=(), complete=True), MISSING),
        (
            RouterReceipt(
                children=(*CHILDREN, ChildCall("GLM", Usage("unknown", reason="zero"))), complete=True
            ),
            Usage("unknown", reason="zero"),
        ),
    ],
)
def test_a_mom_call_spent_what_its_receipt_proves(receipt: RouterReceipt | None, expected: Usage) -> None:
    target = Target.model_validate(mom())
    assert spent_usage(outcome(receipt), target) == expected
    end = call_end("id", "mmlu-pro", outcome(receipt), target)
    assert end.input_tokens == expected.input_tokens
    assert end.usage == STREAM.as_dict()


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ({"call_status": "failed", "failure": "stream_truncated"}, "call_failed"),
        ({"call_status": "failed", "failure": "config_hash_mismatch", "done_count": 1}, "call_failed"),
        ({"done_count": 2}, "several_done"),
    ],
)
def test_what_proves_no_spend(reply: dict[str, Any], reason: str) -> None:
    target = Target.model_validate(single("Flash"))
    assert spent_usage(outcome(), target) == STREAM
    assert spent_usage(outcome(**reply), target) == MISSING
    end = call_end("id", "mmlu-pro", outcome(**reply), target)
    assert (end.cost_usd, end.cost_reason, end.spent_pico) == (None, reason, None)
    assert end.usage == STREAM.as_dict()  # what was said is kept
