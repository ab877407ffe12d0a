"""The pricing vectors: exact costs of calls, of MoM receipts and of direct MoM calls."""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from resources.gateway.pricing import CallCost, price_call, price_mom, price_mom_direct
from resources.gateway.usage import MISSING, Usage
from resources.targets import Price

CASES = json.loads((Path(__file__).parent / "data" / "pricing.json").read_text())["cases"]


@dataclass(frozen=True)
class Child:
    model: str | None
    usage: Usage


def _usage(value: dict[str, int] | None) -> Usage:
    return MISSING if value is None else Usage.from_dict(value)


def _same(cost: CallCost, expect: dict[str, Any]) -> None:
    assert cost.status == expect["status"]
    assert cost.reason == expect.get("reason")
    for field in ("cost_usd", "cache_neutral_cost_usd"):
        wanted = expect[field]
        assert getattr(cost, field) == (None if wanted is None else Decimal(wanted))
    if "by_bucket" in expect:
        assert cost.by_bucket is not None
        assert dict(cost.by_bucket) == {name: Decimal(text) for name, text in expect["by_bucket"].items()}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_vector(case: dict[str, Any]) -> None:
    prices = {model: Price.model_validate(rates) for model, rates in case["prices"].items()}
    if case["kind"] == "call":
        _same(price_call(case["model"], _usage(case["usage"]), prices), case["expect"])
    elif case["kind"] == "mom_direct":
        _same(price_mom_direct(case["selected_model"], _usage(case["usage"]), prices), case["expect"])
    else:
        children = [Child(child["model"], _usage(child["usage"])) for child in case["children"]]
        cost = price_mom(children, prices)
        assert len(cost.children) == len(case["expect"]["children"])
        for child, expect in zip(cost.children, case["expect"]["children"], strict=True):
            _same(child, expect)
        _same(cost.total, case["expect"]["total"])
