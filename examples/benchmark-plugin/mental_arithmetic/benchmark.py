"""Mental arithmetic: products of two-digit numbers, four options each. An example, not a measure of anything."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from sr_bench_assets.benchmarks.choice_prompt import choice_messages
from sr_bench_assets.benchmarks.contract import Benchmark, Case, HubSource, SourceFiles
from sr_bench_assets.benchmarks.execution.single_call import graded_call
from sr_bench_assets.benchmarks.grading.multiple_choice import grade_choice
from sr_bench_assets.benchmarks.source_tables import read_columns, text_of, the_file

ID = "mental-arithmetic"
FILE = "tasks.jsonl"


# 1. Source rows to cases. `category` is the stratum that selection keeps in proportion; `input` is what people may
#    see; `reference` holds the labels and never leaves the store.
def read_cases(files: SourceFiles, seed: int) -> Iterable[Case]:
    """One case per row; the seed has no influence."""
    path = the_file(files, FILE)
    table = read_columns(path, ("task_id", "size", "question", "options", "answer"))
    for row, native in enumerate(table["task_id"]):
        size = text_of(path, row, "size", table["size"][row])
        question, options = table["question"][row], table["options"][row]
        yield Case(
            id=f"{ID}/{native}",
            benchmark=ID,
            category=size,
            messages=choice_messages("mental arithmetic", question, options),
            input={"question": question, "options": options},
            reference={"answer": table["answer"][row]},
        )


BENCHMARK = Benchmark(
    id=ID,
    title="Mental arithmetic (example)",
    capability="Products of two-digit numbers",
    kind="multiple_choice",
    # 2. How many cases each profile takes. smoke and quick are prefixes; standard is the window after quick.
    counts={"smoke": 2, "quick": 10, "standard": 20},
    weight=Fraction(0),
    # 3. Where the tasks come from: a hub repository or git repository at one commit. This one exists only locally.
    source=HubSource("your-name/mental-arithmetic", "0" * 40, (FILE,)),
    # 4. Versions: change the first with prompts or grading, the second when the same bytes give other cases.
    adapter_version="mental-arithmetic-1",
    normalizer_version="mental-arithmetic-normalizer-1",
    licence="Apache-2.0",
    access_note="An example: make the tasks with `python -m mental_arithmetic.make_tasks` and import them.",
    read_cases=read_cases,
    execute=graded_call(grade_choice),
    grade=grade_choice,
    grader_version="choice-grader-1",
)
