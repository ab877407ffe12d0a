"""The usage vectors: raw provider counters to four exclusive buckets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from resources.gateway.usage import Usage, normalise_usage

CASES = json.loads((Path(__file__).parent / "data" / "usage.json").read_text())["cases"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_vector(case: dict[str, Any]) -> None:
    usage = normalise_usage(case["usage"])
    assert usage.as_dict() == case["expect"]
    assert Usage.from_dict(usage.as_dict()) == usage
