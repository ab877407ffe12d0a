"""The grader vectors: multiple choice, grids, and the judge's verdict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sr_bench_assets.benchmarks.grading.grids import read_grids
from sr_bench_assets.benchmarks.grading.judge import read_verdict
from sr_bench_assets.benchmarks.grading.multiple_choice import read_choice

DATA = Path(__file__).parent / "data"


def vectors(name: str) -> Any:
    cases = json.loads((DATA / name).read_text("utf-8"))["cases"]
    return pytest.mark.parametrize("case", cases, ids=lambda case: case["id"])


@vectors("mcq.json")
def test_choice(case: dict[str, Any]) -> None:
    choice = read_choice(case["text"], case["options"])
    assert {
        "answer": choice.answer,
        "status": choice.status,
        "strict_format": choice.strict_format,
    } == case["expect"]


@vectors("grid.json")
def test_grid(case: dict[str, Any]) -> None:
    reading = read_grids(case["text"], case["test_inputs"])
    assert {
        "grids": reading.grids,
        "reason": reading.reason,
        "correct": reading.grids == case["expected"],
    } == case["expect"]


@vectors("judge.json")
def test_judge(case: dict[str, Any]) -> None:
    judgement = read_verdict(case["text"])
    status = "ok" if judgement.error is None else "error"
    assert {"status": status, "verdict": judgement.verdict} == case["expect"]
