"""Humanity's Last Exam (text-only questions).

Long Phan, Alice Gatti, Ziwen Han, Nathaniel Li, Josephina Hu, Hugh Zhang, Summer Yue, Alexandr Wang,
Dan Hendrycks et al. (Center for AI Safety and Scale AI, 2025)
https://arxiv.org/abs/2501.14249
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from sr_bench_assets.benchmarks.contract import Benchmark, Case, CaseIndex, CaseKey, HubSource, SourceFiles
from sr_bench_assets.benchmarks.execution.judged import judged_call
from sr_bench_assets.benchmarks.grading.judge import GRADER_VERSION
from sr_bench_assets.benchmarks.source_tables import filled_rows, read_columns, text_of, the_file

ID = "hle"
FILE = "data/test-00000-of-00001.parquet"
COLUMNS = ("id", "category", "question", "answer", "answer_type")


def index(files: SourceFiles, seed: int) -> CaseIndex:
    """Keys of the rows without an image; rows with one are no tasks of this benchmark."""
    path = the_file(files, FILE)
    table = read_columns(path, COLUMNS)
    with_image = filled_rows(path, "image")
    rows = [row for row, image in enumerate(with_image) if not image]
    keys: list[CaseKey] = []
    for row in rows:
        native = text_of(path, row, "id", table["id"][row])
        category = text_of(path, row, "category", table["category"][row])
        keys.append(CaseKey(f"{ID}/{native}", category, native))

    def build(positions: Sequence[int]) -> list[Case]:
        cases: list[Case] = []
        for position in positions:
            row, key = rows[position], keys[position]
            question = text_of(path, row, "question", table["question"][row])
            cases.append(
                Case(
                    id=key.id,
                    benchmark=ID,
                    category=key.stratum,
                    messages=_messages(question),
                    input={"question": question, "answer_type": table["answer_type"][row]},
                    reference={"answer": text_of(path, row, "answer", table["answer"][row])},
                )
            )
        return cases

    return CaseIndex(keys, build)


def read_cases(files: SourceFiles, seed: int) -> Iterable[Case]:
    """All text-only cases of the source; the seed has no influence."""
    cases = index(files, seed)
    return cases.build(range(len(cases.keys)))


def _messages(question: str) -> list[dict[str, Any]]:
    text = (
        f"{question}\n\n"
        "Explain your reasoning briefly, then end with one line `Final answer:` followed by your answer in its "
        "shortest exact form (for a choice among options, the letter of the option)."
    )
    return [{"role": "user", "content": text}]


BENCHMARK = Benchmark(
    id=ID,
    title="Humanity's Last Exam",
    capability="Text-only expert reasoning",
    kind="judge",
    counts={"smoke": 4, "quick": 40, "standard": 200},
    weight=Fraction(3, 20),
    source=HubSource("cais/hle", "5a81a4c7271a2a2a312b9a690f0c2fde837e4c29", (FILE,), gated=True),
    adapter_version="hle-1",
    normalizer_version="hle-normalizer-1",
    licence="MIT",
    access_note="Gated: accept the terms on the hub and set HF_TOKEN. The authors ask not to publish the tasks.",
    read_cases=read_cases,
    execute=judged_call,
    grader_version=GRADER_VERSION,
    index=index,
    needs=("judge",),
)
