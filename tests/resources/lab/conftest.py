"""Prepared questions for the lab's tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.servers.lab import lab_server

__all__ = ["cases_path", "lab_server"]

CATEGORIES = ("math", "law", "physics", "history")


def case_row(number: int, *, text: str | None = None) -> dict[str, Any]:
    """A prepared multiple-choice case with five options, as `dataset prepare` writes it."""
    return {
        "id": f"mmlu-pro/{number}",
        "benchmark": "mmlu-pro",
        "category": CATEGORIES[number % 4],
        "messages": [{"role": "user", "content": text or f"Question {number}: which letter? " + "x" * 300}],
        "input": {"question": f"Question {number}", "options": list("vwxyz")},
        "reference": {"answer": "ABCDE"[number % 5]},
        "identity": None,
    }


@pytest.fixture(scope="session")
def cases_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("dataset") / "cases.jsonl"
    path.write_text("".join(json.dumps(case_row(number)) + "\n" for number in range(400)), encoding="utf-8")
    return path
