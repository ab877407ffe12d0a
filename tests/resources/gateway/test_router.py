"""Receipts of the router, good and bad."""

from __future__ import annotations

import json
from typing import Any

import pytest

from resources.gateway.router import read_receipt

USAGE = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}


def _receipt(value: Any) -> dict[str, str]:
    return {"X-VSR-Model-Usage": value if isinstance(value, str) else json.dumps(value)}


def test_no_router_header_no_receipt() -> None:
    assert read_receipt({"content-type": "text/event-stream", "x-sr-bench-lab": "1"}) is None


def test_a_direct_call() -> None:
    receipt = read_receipt(
        {
            "x-vsr-config-hash": "old",
            "x-sr-bench-config-hash": "h1",
            "x-vsr-selected-model": "m-2",
            "x-vsr-selected-decision": "math",
            "x-vsr-inference-call-count": "1",
            "x-vsr-session-phase": "new",
        }
    )
    assert receipt is not None
    assert (receipt.config_hash, receipt.selected_model, receipt.decision) == ("h1", "m-2", "math")
    assert (receipt.inference_call_count, receipt.session_phase, receipt.children) == (1, "new", None)


def test_a_receipt_of_two_calls() -> None:
    calls = [{"model": "a", "usage": USAGE}, {"model": "b"}]
    receipt = read_receipt(_receipt({"version": 1, "complete": True, "calls": calls}))
    assert receipt is not None
    assert receipt.children is not None
    assert [child.model for child in receipt.children] == ["a", "b"]
    assert [child.usage.status for child in receipt.children] == ["known", "unknown"]
    assert receipt.complete is True
    json.dumps(receipt.as_dict())


@pytest.mark.parametrize(
    "value",
    ["{", "[]", {"version": 2, "complete": True, "calls": []}, {"version": 1}, {"version": 1, "calls": [1]}],
)
def test_an_unreadable_receipt_lists_no_child_and_says_why(value: Any) -> None:
    receipt = read_receipt(_receipt(value))
    assert receipt is not None
    assert receipt.children is None
    assert receipt.problem


@pytest.mark.parametrize("count", ["", "-1", "1.0", "two", "²"])
def test_a_count_that_is_no_number_is_unknown(count: str) -> None:
    receipt = read_receipt({"x-vsr-inference-call-count": count})
    assert receipt is not None
    assert receipt.inference_call_count is None


def test_complete_must_be_said() -> None:
    receipt = read_receipt(_receipt({"version": 1, "calls": []}))
    assert receipt is not None
    assert receipt.complete is False
