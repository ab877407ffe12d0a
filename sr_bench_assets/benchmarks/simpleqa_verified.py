"""SimpleQA Verified: A Reliable Factuality Benchmark to Measure Parametric Knowledge.

Lukas Haas, Gal Yona, Giovanni D'Antonio, Sasha Goldshtein, Dipanjan Das (Google DeepMind, 2025)
https://arxiv.org/abs/2509.07968
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from sr_bench_assets.benchmarks.contract import Benchmark, Case, HubSource, SourceFiles
from sr_bench_assets.benchmarks.execution.judged import judged_call
from sr_bench_assets.benchmarks.grading.judge import GRADER_VERSION
from sr_bench_assets.benchmarks.source_tables import read_columns, text_of, the_file

ID = "simpleqa-verified"
FILE = "simpleqa_verified.csv"


def read_cases(files: SourceFiles, seed: int) -> Iterable[Case]:
    """One case per row; the id is the row's 0-based number in the file, not its original_index."""
    path = the_file(files, FILE)
    table = read_columns(path, ("problem", "answer", "topic"))
    for row, (problem, answer, topic) in enumerate(
        zip(table["problem"], table["answer"], table["topic"], strict=True)
    ):
        question = text_of(path, row, "problem", problem)
        yield Case(
            id=f"{ID}/{row}",
            benchmark=ID,
            category=text_of(path, row, "topic", topic),
            messages=[{"role": "user", "content": question}],
            input={"question": question},
            reference={"answer": text_of(path, row, "answer", answer)},
        )


BENCHMARK = Benchmark(
    id=ID,
    title="SimpleQA Verified",
    capability="Factual correctness",
    kind="judge",
    counts={"smoke": 5, "quick": 100, "standard": 500},
    weight=Fraction(1, 10),
    source=HubSource("google/simpleqa-verified", "0dc97e0d28d8233463e005cdc4475cc2a13ba2dc", (FILE,)),
    adapter_version="simpleqa-verified-1",
    normalizer_version="simpleqa-verified-normalizer-1",
    licence="MIT",
    access_note="Open download.",
    read_cases=read_cases,
    execute=judged_call,
    grader_version=GRADER_VERSION,
    needs=("judge",),
)
