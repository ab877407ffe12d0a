"""The usage reconciliation vectors, one test a vector."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from resources.targets import Price
from sr_bench_assets.usage.reconciliation import RetainedStream, TerminalRecord, reconcile

CASES = json.loads((Path(__file__).parent / "data" / "reconcile.json").read_bytes())["cases"]


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_vector(case: dict[str, Any]) -> None:
    record = {**case["record"], "accounted_calls": tuple(case["record"].get("accounted_calls", ()))}
    prices = {model: Price.model_validate(rates) for model, rates in case["prices"].items()}
    found = reconcile(RetainedStream(**case["stream"]), TerminalRecord(**record), prices)
    expect = case["expect"]
    assert found.outcome == expect["outcome"]
    assert found.reason == expect["reason"]
    assert list(found.wrong_buckets) == expect["wrong_buckets"]
    assert found.usage == expect["usage"]
    assert found.priced_model == expect["priced_model"]
    assert found.cost_usd == (None if expect["cost_usd"] is None else Decimal(expect["cost_usd"]))
