"""Stores and small sources in the native columns of real benchmarks, all of our own making."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from resources.store import Store
from sr_bench_assets.datasets.artifact import DatasetManifest
from sr_bench_assets.datasets.preparation import prepare
from sr_bench_assets.datasets.request import PreparationRequest

SUBJECTS = [f"subject {letter}" for letter in "abcdefghijklmn"]
Prepare = Callable[..., DatasetManifest]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store")


def mmlu_rows(count: int) -> list[dict[str, Any]]:
    """Arithmetic questions whose right option's text is a word that occurs nowhere else."""
    rows: list[dict[str, Any]] = []
    for number in range(count):
        options = [str(number + shift) for shift in (3, 1, 7, 2)]
        rows.append(
            {
                "question_id": number,
                "question": f"What is {number} + 1?",
                "options": options,
                "answer": "B",
                "answer_index": 1,
                "cot_content": f"secretreasoning{number}",
                "category": SUBJECTS[number % len(SUBJECTS)],
                "src": "own",
            }
        )
    return rows


@pytest.fixture(scope="session")
def mmlu_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """3,000 questions in MMLU-Pro's columns."""
    path = tmp_path_factory.mktemp("sources") / "questions.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in mmlu_rows(3000)))
    return path


@pytest.fixture(scope="session")
def gpqa_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """198 questions in GPQA's columns."""
    path = tmp_path_factory.mktemp("sources") / "gpqa_diamond.csv"
    names = [
        "Question",
        "Correct Answer",
        *(f"Incorrect Answer {n}" for n in (1, 2, 3)),
        "Subdomain",
        "Record ID",
    ]
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, names)
        writer.writeheader()
        for number in range(198):
            writer.writerow(
                {
                    "Question": f"Which number follows {number}?",
                    "Correct Answer": f"{number + 1}",
                    **{f"Incorrect Answer {n}": f"{number + 10 * n + 1}" for n in (1, 2, 3)},
                    "Subdomain": f"field {number % 5}",
                    "Record ID": f"rec{number}",
                }
            )
    return path


@pytest.fixture
def prepare_mmlu(store: Store, mmlu_file: Path) -> Prepare:
    """`prepare_mmlu(profile=…, …)`: an import of `mmlu_file` at revision v1."""

    def make(**changes: Any) -> DatasetManifest:
        facts = {
            "benchmarks": ("mmlu-pro",),
            "profile": "quick",
            "source_path": str(mmlu_file),
            "revision": "v1",
            **changes,
        }
        return prepare(store, PreparationRequest(**facts))

    return make


@pytest.fixture
def prepare_gpqa(store: Store, gpqa_file: Path) -> Prepare:
    """`prepare_gpqa(profile=…, …)`: an import of `gpqa_file` at revision v1."""

    def make(**changes: Any) -> DatasetManifest:
        facts = {
            "benchmarks": ("gpqa-diamond",),
            "profile": "quick",
            "source_path": str(gpqa_file),
            "revision": "v1",
            **changes,
        }
        return prepare(store, PreparationRequest(**facts))

    return make
