"""GPQA: A Graduate-Level Google-Proof Q&A Benchmark (the Diamond subset).

David Rein, Betty Li Hou, Asa Cooper Stickland, Jackson Petty, Richard Yuanzhe Pang, Julien Dirani, Julian Michael,
Samuel R. Bowman (2023)
https://arxiv.org/abs/2311.12022
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

from resources.canonical import selection_hash
from sr_bench_assets.benchmarks.choice_prompt import choice_messages
from sr_bench_assets.benchmarks.contract import Benchmark, Case, CaseIndex, CaseKey, HubSource, SourceFiles
from sr_bench_assets.benchmarks.execution.single_call import graded_call
from sr_bench_assets.benchmarks.grading.multiple_choice import grade_choice
from sr_bench_assets.benchmarks.source_tables import read_columns, refuse_row, text_of, the_file

ID = "gpqa-diamond"
FILE = "gpqa_diamond.csv"
OPTIONS = ("Correct Answer", "Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3")


def index(files: SourceFiles, seed: int) -> CaseIndex:
    """Keys of all rows; the native id is the full hash of the unformatted question."""
    path = the_file(files, FILE)
    table = read_columns(path, ("Question", "Subdomain", *OPTIONS))
    keys: list[CaseKey] = []
    for number, (question, subdomain) in enumerate(zip(table["Question"], table["Subdomain"], strict=True)):
        text_of(path, number, "Question", question)
        native = selection_hash(question)
        keys.append(CaseKey(f"{ID}/{native[:24]}", text_of(path, number, "Subdomain", subdomain), native))

    def build(positions: Sequence[int]) -> list[Case]:
        return [_case(path, table, number, keys[number], seed) for number in positions]

    return CaseIndex(keys, build)


def read_cases(files: SourceFiles, seed: int) -> Iterable[Case]:
    """All cases of the source, their options shuffled by `seed`."""
    cases = index(files, seed)
    return cases.build(range(len(cases.keys)))


def option_order(seed: int, short_id: str) -> list[int]:
    """Shuffled positions over (correct, incorrect 1, 2, 3): the entry at place p is the option shown as letter p."""
    order = [0, 1, 2, 3]
    Random(selection_hash([seed, short_id])).shuffle(order)
    return order


def _case(path: Path, table: dict[str, list[Any]], number: int, key: CaseKey, seed: int) -> Case:
    question = text_of(path, number, "Question", table["Question"][number])
    given = [text_of(path, number, name, table[name][number]) for name in OPTIONS]
    if given[0] in given[1:]:
        refuse_row(path, number, "has an incorrect answer equal to the correct one")
    order = option_order(seed, key.native_id[:24])
    options = [given[place] for place in order]
    return Case(
        id=key.id,
        benchmark=ID,
        category=key.stratum,
        messages=choice_messages(key.stratum, question, options),
        input={"question": question, "options": options},
        reference={"answer": "ABCD"[order.index(0)]},
    )


BENCHMARK = Benchmark(
    id=ID,
    title="GPQA Diamond",
    capability="Scientific reasoning",
    kind="multiple_choice",
    counts={"smoke": 4, "quick": 40, "standard": 158},
    weight=Fraction(3, 20),
    source=HubSource("Idavidrein/gpqa", "633f5ee89ab8ad4522a9f850766b73f62147ffdd", (FILE,), gated=True),
    adapter_version="gpqa-diamond-1",
    normalizer_version="gpqa-diamond-normalizer-1",
    licence="CC-BY-4.0",
    access_note="Gated: accept the terms on the hub and set HF_TOKEN. The authors ask not to publish the questions.",
    read_cases=read_cases,
    execute=graded_call(grade_choice),
    grade=grade_choice,
    grader_version="choice-grader-1",
    index=index,
)
