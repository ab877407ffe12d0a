"""Recorded mode: the letters that real models gave, read from a CSV of predictions."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from resources.errors import NotFound, SrBenchError
from resources.lab.answer_key import KnownCase

KEY_COLUMNS = ("question_id", "category", "answer")
NO_ANSWER = "NONE"
PREFIX = "lab-recorded-"
"""Recorded models are served as `lab-recorded-<column>`: a recording says nothing of the model of today."""


@dataclass(frozen=True)
class Recording:
    """Predictions by model (column name) and native question id; None where no answer was extracted."""

    models: tuple[str, ...]
    predictions: dict[str, dict[str, str | None]]
    answers: dict[str, str]
    categories: dict[str, str]

    @classmethod
    def read(cls, path: Path) -> Recording:
        """Read a CSV with the columns question_id, category, answer and one per model.

        Raises `NotFound` without the file, `SrBenchError` on missing columns, repeated ids, bad letters.
        """
        if not path.is_file():
            raise NotFound(f"there is no recording at {path}", field="recorded.file")
        with path.open(encoding="utf-8", newline="") as file:
            rows = csv.DictReader(file)
            columns = list(rows.fieldnames or [])
            if tuple(columns[:3]) != KEY_COLUMNS or len(columns) < 4:
                raise SrBenchError(
                    f"{path.name} begins with the columns {', '.join(columns[:4])}",
                    field="recorded.file",
                    mend=f"The first columns must be {', '.join(KEY_COLUMNS)}, then one for each model.",
                )
            models = tuple(columns[3:])
            recording = cls(models, {model: {} for model in models}, {}, {})
            for number, row in enumerate(rows, 2):
                recording._add(row, f"{path.name} line {number}")
        return recording

    def _add(self, row: dict[str, str], where: str) -> None:
        question = row["question_id"]
        if question in self.answers:
            raise SrBenchError(f"{where}: question {question} stands twice", field="recorded.file")
        self.answers[question] = row["answer"]
        self.categories[question] = row["category"]
        for model in self.models:
            letter = row[model]
            if letter != NO_ANSWER and not (letter and len(letter) == 1 and "A" <= letter <= "Z"):
                raise SrBenchError(
                    f"{where}: {letter!r} of {model} is neither a letter nor {NO_ANSWER}",
                    field="recorded.file",
                )
            self.predictions[model][question] = None if letter == NO_ANSWER else letter

    def accuracy(self, model: str, questions: Iterable[str] | None = None) -> tuple[int, int]:
        """(correct, asked) of `model` over `questions` (all by default), straight from the CSV."""
        asked = list(self.answers if questions is None else questions)
        correct = sum(self.predictions[model][question] == self.answers[question] for question in asked)
        return correct, len(asked)

    def coverage(self, benchmark: str, cases: Iterable[KnownCase]) -> tuple[int, int]:
        """(recorded, prepared): how many of the prepared cases of `benchmark` have a recorded answer."""
        mine = [case for case in cases if case.benchmark == benchmark]
        return sum(case.native_id in self.answers for case in mine), len(mine)
