"""SciCode: A Research Coding Benchmark Curated by Scientists.

Minyang Tian, Luyu Gao, Shizhuo Dylan Zhang, Xinan Chen, Cunwei Fan, Xuefei Guo, Roland Haas, Pan Ji et al.
(NeurIPS 2024)
https://arxiv.org/abs/2407.13168
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

from sr_bench_assets.benchmarks.contract import Benchmark, Case, HubSource, SourceFiles
from sr_bench_assets.benchmarks.source_tables import json_lines, refuse_row, text_of, the_file

ID = "scicode"
FILE = "problems_test.jsonl"
TEST_DATA_SHA256 = "48b0272a88b17dbd29777c217e1b4fb2b019b92e11cc2add847409db9541b890"
"""Of upstream's test_data.h5, which holds the targets that the step tests compare with."""

_STEP_TEXTS = ("step_number", "step_description_prompt", "function_header")


def read_cases(files: SourceFiles, seed: int) -> Iterable[Case]:
    """One case per main problem with all its steps; the steps are sent one after the other when it is run."""
    path = the_file(files, FILE)
    for number, (_, row) in enumerate(json_lines(path)):
        native = text_of(path, number, "problem_id", row.get("problem_id"))
        steps = row.get("sub_steps")
        if not isinstance(steps, list) or not steps:
            refuse_row(path, number, "has no 'sub_steps'")
        yield Case(
            id=f"{ID}/{native}",
            benchmark=ID,
            category=row.get("domain") or "all",
            messages=[],
            input={
                "name": row.get("problem_name"),
                "description": text_of(
                    path, number, "problem_description_main", row.get("problem_description_main")
                ),
                "background": row.get("problem_background_main") or "",
                "input_output": row.get("problem_io") or "",
                "dependencies": row.get("required_dependencies") or "",
                "steps": [_visible(path, number, step) for step in steps],
            },
            reference={
                "step_tests": {step["step_number"]: step["test_cases"] for step in steps},
                "general_tests": row.get("general_tests"),
                "test_data_sha256": TEST_DATA_SHA256,
            },
        )


def _visible(path: Path, number: int, step: Any) -> dict[str, str]:
    """What the model may see of a step: all but its tests and any ground truth."""
    if not isinstance(step, dict) or not isinstance(step.get("test_cases"), list):
        refuse_row(path, number, "has a step without 'test_cases'")
    missing = [name for name in _STEP_TEXTS if not isinstance(step.get(name), str)]
    if missing:
        refuse_row(path, number, f"has a step without {', '.join(missing)}")
    # Upstream's steps lack one or the other of these now and then.
    return {name: step.get(name) or "" for name in (*_STEP_TEXTS, "step_background", "return_line")}


BENCHMARK = Benchmark(
    id=ID,
    title="SciCode",
    capability="Scientific programming, whole main problems",
    kind="code",
    counts={"smoke": 1, "quick": 3, "standard": 20},
    weight=Fraction(1, 10),
    source=HubSource("SciCode1/SciCode", "4510f6a6aa27c43fad7b43da2c59602a86e88480", (FILE,)),
    adapter_version="scicode-1",
    normalizer_version="scicode-normalizer-1",
    licence="Apache-2.0",
    access_note="Open download. Grading needs upstream's test_data.h5 and the sandbox.",
    read_cases=read_cases,
    needs=("sandbox",),
)
