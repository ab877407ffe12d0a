"""ARC-AGI-2: A New Challenge for Frontier AI Reasoning Systems (the public evaluation puzzles).

Francois Chollet, Mike Knoop, Gregory Kamradt, Bryan Landers, Henry Pinkard (2025)
https://arxiv.org/abs/2505.11831
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path, PurePosixPath
from typing import Any, NoReturn

from resources.errors import SrBenchError
from sr_bench_assets.benchmarks.contract import Benchmark, Case, GitSource, SourceFiles
from sr_bench_assets.benchmarks.execution.single_call import graded_call
from sr_bench_assets.benchmarks.grading.grids import GridFault, check_grid, grade_grids
from sr_bench_assets.benchmarks.source_tables import tree_bytes

ID = "arc-agi-2"
FOLDER = "data/evaluation"


def read_cases(files: SourceFiles, seed: int) -> Iterable[Case]:
    """One case per puzzle file, by file name; all test grids of a puzzle stay in one case."""
    named = {PurePosixPath(name): path for name, path in files.files.items() if name.endswith(".json")}
    puzzles = {name.stem: path for name, path in named.items() if str(name.parent) == FOLDER}
    if not puzzles:
        raise SrBenchError(
            f"the source holds no puzzle files ({FOLDER}/*.json)",
            field="source_path",
            mend="point to a checkout of ARC-AGI-2",
        )
    for stem in sorted(puzzles):
        yield _case(stem, puzzles[stem])


def _case(stem: str, path: Path) -> Case:
    try:
        puzzle = json.loads(tree_bytes(path))
    except ValueError as error:
        _refuse(path, f"is no JSON: {error}")
    try:
        train = [
            {"input": check_grid(pair["input"]), "output": check_grid(pair["output"])}
            for pair in puzzle["train"]
        ]
        tests = [check_grid(pair["input"]) for pair in puzzle["test"]]
        expected = [check_grid(pair["output"]) for pair in puzzle["test"]]
    except (KeyError, TypeError, GridFault) as error:
        _refuse(path, f"is no puzzle with train and test pairs of grids ({error})")
    if not train or not tests:
        _refuse(path, "has no train or no test pairs")
    return Case(
        id=f"{ID}/{stem}",
        benchmark=ID,
        category="all",
        messages=_messages(train, tests),
        input={"train": train, "test_inputs": tests},
        reference={"grids": expected},
    )


def _refuse(path: Path, what: str) -> NoReturn:
    raise SrBenchError(
        f"{path.name} {what}", field="source_path", mend="restore the file from the pinned revision"
    )


def _messages(train: list[dict[str, Any]], tests: list[Any]) -> list[dict[str, Any]]:
    shown = "\n\n".join(
        f"Example {number}\ninput: {_compact(pair['input'])}\noutput: {_compact(pair['output'])}"
        for number, pair in enumerate(train, 1)
    )
    asked = "\n".join(f"Test {number}\ninput: {_compact(grid)}" for number, grid in enumerate(tests, 1))
    count = "1 grid" if len(tests) == 1 else f"{len(tests)} grids, in the order of the tests"
    text = (
        "A puzzle maps input grids to output grids by one hidden rule. Grids are JSON arrays of rows; "
        "each cell is a colour from 0 to 9. Find the rule from the examples and apply it to the tests.\n\n"
        f"{shown}\n\n{asked}\n\n"
        f"End your reply with one JSON array that holds the test outputs ({count}), each an array of rows of "
        "integers, for instance [[[0,1],[1,0]]]. Write no other JSON array and nothing after it."
    )
    return [{"role": "user", "content": text}]


def _compact(grid: Any) -> str:
    return json.dumps(grid, separators=(",", ":"))


BENCHMARK = Benchmark(
    id=ID,
    title="ARC-AGI-2",
    capability="Public evaluation puzzles, exact output grids",
    kind="grid",
    counts={"smoke": 2, "quick": 12, "standard": 80},
    weight=Fraction(1, 10),
    source=GitSource(
        "https://github.com/arcprize/ARC-AGI-2", "f3283f727488ad98fe575ea6a5ac981e4a188e49", (FOLDER,)
    ),
    adapter_version="arc-agi-2-1",
    normalizer_version="arc-agi-2-normalizer-1",
    licence="Apache-2.0",
    access_note="Open repository. One attempt per puzzle; all of its test grids must be right.",
    read_cases=read_cases,
    execute=graded_call(grade_grids),
    grade=grade_grids,
    grader_version="grid-grader-1",
)
