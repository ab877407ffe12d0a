"""MMLU-Pro: A More Robust and Challenging Multi-Task Language Understanding Benchmark.

Yubo Wang, Xueguang Ma, Ge Zhang, Yuansheng Ni, Abhranil Chandra, Shiguang Guo, Weiming Ren, Aaran Arulraj, Xuan He,
Ziyan Jiang, Tianle Li, Max Ku, Kai Wang, Alex Zhuang, Rongqi Fan, Xiang Yue, Wenhu Chen (NeurIPS 2024)
https://arxiv.org/abs/2406.01574
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from sr_bench_assets.benchmarks.choice_prompt import choice_messages
from sr_bench_assets.benchmarks.contract import Benchmark, Case, CaseIndex, CaseKey, HubSource, SourceFiles
from sr_bench_assets.benchmarks.execution.single_call import graded_call
from sr_bench_assets.benchmarks.grading.multiple_choice import grade_choice
from sr_bench_assets.benchmarks.source_tables import list_of, read_columns, refuse_row, text_of, the_file

ID = "mmlu-pro"
FILE = "data/test-00000-of-00001.parquet"
COLUMNS = ("question", "options", "answer", "category", "question_id")


def index(files: SourceFiles, seed: int) -> CaseIndex:
    """Keys of all rows from two columns; the question columns are read once, when cases are built."""
    path = the_file(files, FILE)
    table = read_columns(path, ("question_id", "category"))
    keys: list[CaseKey] = []
    for number, (question_id, category) in enumerate(
        zip(table["question_id"], table["category"], strict=True)
    ):
        if question_id is None or isinstance(question_id, bool | float):
            refuse_row(path, number, "has no integer in 'question_id'")
        native = str(question_id)
        keys.append(CaseKey(f"{ID}/{native}", text_of(path, number, "category", category), native))
    return CaseIndex(keys, lambda positions: _build(path, keys, positions))


def read_cases(files: SourceFiles, seed: int) -> Iterable[Case]:
    """All cases of the source; the seed has no influence."""
    cases = index(files, seed)
    return cases.build(range(len(cases.keys)))


def _build(path: Path, keys: Sequence[CaseKey], positions: Sequence[int]) -> list[Case]:
    table = read_columns(path, ("question", "options", "answer"))
    return [
        _case(
            path,
            position,
            keys[position],
            *(table[name][position] for name in ("question", "options", "answer")),
        )
        for position in positions
    ]


def _case(path: Path, number: int, key: CaseKey, question: Any, options: Any, answer: Any) -> Case:
    options = list_of(options)
    if not isinstance(options, list) or not 2 <= len(options) <= 10:
        refuse_row(path, number, "does not have 2 to 10 'options'")
    # The letter rules, not answer_index: upstream's own evaluation compares letters, and one row disagrees.
    if not isinstance(answer, str) or len(answer) != 1 or answer not in ascii_uppercase[: len(options)]:
        refuse_row(path, number, "has an 'answer' that is not the letter of one of its options")
    asked = text_of(path, number, "question", question)
    texts = [text_of(path, number, "options", option) for option in options]
    return Case(
        id=key.id,
        benchmark=ID,
        category=key.stratum,
        messages=choice_messages(key.stratum, asked, texts),
        input={"question": asked, "options": texts},
        reference={"answer": answer},
    )


BENCHMARK = Benchmark(
    id=ID,
    title="MMLU-Pro",
    capability="Knowledge across 14 subjects",
    kind="multiple_choice",
    counts={"smoke": 14, "quick": 500, "standard": 2000},
    weight=Fraction(1, 10),
    source=HubSource("TIGER-Lab/MMLU-Pro", "b189ec765aa7ed75c8acfea42df31fdae71f97be", (FILE,)),
    adapter_version="mmlu-pro-1",
    normalizer_version="mmlu-pro-normalizer-1",
    licence="Apache-2.0 (repository TIGER-AI-Lab/MMLU-Pro)",
    access_note="Open download.",
    read_cases=read_cases,
    execute=graded_call(grade_choice),
    grade=grade_choice,
    grader_version="choice-grader-1",
    index=index,
)
