"""LiveCodeBench: Holistic and Contamination Free Evaluation of Large Language Models for Code (cumulative v6).

Naman Jain, King Han, Alex Gu, Wen-Ding Li, Fanjia Yan, Tianjun Zhang, Sida Wang, Armando Solar-Lezama, Koushik Sen,
Ion Stoica (2024)
https://arxiv.org/abs/2403.07974
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from resources.errors import SrBenchError
from sr_bench_assets.benchmarks.contract import Benchmark, Case, CaseIndex, CaseKey, HubSource, SourceFiles
from sr_bench_assets.benchmarks.hidden_tests import decode_tests
from sr_bench_assets.benchmarks.source_tables import json_line_at, json_lines, text_of, the_file

ID = "livecodebench"
FILES = ("test.jsonl", "test2.jsonl", "test3.jsonl", "test4.jsonl", "test5.jsonl", "test6.jsonl")


def index(files: SourceFiles, seed: int) -> CaseIndex:
    """Keys of all problems and where their lines start; a line (megabytes of tests) is read again when built."""
    keys: list[CaseKey] = []
    places: list[tuple[Path, int]] = []
    for path in (the_file(files, name) for name in FILES):
        for number, (offset, row) in enumerate(json_lines(path)):
            native = text_of(path, number, "question_id", row.get("question_id"))
            keys.append(
                CaseKey(f"{ID}/{native}", text_of(path, number, "difficulty", row.get("difficulty")), native)
            )
            places.append((path, offset))

    def build(positions: Sequence[int]) -> list[Case]:
        return [_case(keys[position], *places[position]) for position in positions]

    return CaseIndex(keys, build)


def read_cases(files: SourceFiles, seed: int) -> Iterable[Case]:
    """All cases of the six files, in their order; the seed has no influence."""
    cases = index(files, seed)
    return (case for position in range(len(cases.keys)) for case in cases.build([position]))


def _case(key: CaseKey, path: Path, offset: int) -> Case:
    row = json_line_at(path, offset)
    try:
        statement = text_of(path, 0, "question_content", row.get("question_content"))
        public = decode_tests(row["public_test_cases"])
        encoded = row["private_test_cases"]
        private = decode_tests(encoded)
        metadata = json.loads(row.get("metadata") or "{}")
    except SrBenchError as error:
        raise SrBenchError(
            f"{key.id}: {error.message}", code=error.code, field=error.field, mend=error.mend
        ) from error
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise SrBenchError(
            f"{key.id} in {path.name} lacks tests or metadata in the upstream's form",
            field="source_path",
            mend="use the pinned files of code_generation_lite",
        ) from error
    starter = row.get("starter_code") or ""
    return Case(
        id=key.id,
        benchmark=ID,
        category=key.stratum,
        messages=_messages(statement, starter),
        input={
            "title": row.get("question_title"),
            "statement": statement,
            "starter_code": starter,
            "platform": row.get("platform"),
            "contest_date": row.get("contest_date"),
            "public_tests": public,
        },
        # The hidden tests stay as upstream encodes them: decoded they can be a hundred times larger.
        reference={
            "private_tests_encoded": encoded,
            "private_test_count": len(private),
            "function_name": metadata.get("func_name"),
        },
    )


def _messages(statement: str, starter: str) -> list[dict[str, Any]]:
    if starter.strip():
        form = (
            "Complete this starter code, keeping its class and method names:\n\n"
            f"```python\n{starter.rstrip()}\n```\n\nDo not read input or print."
        )
    else:
        form = "Write a whole program that reads standard input and prints to standard output."
    text = (
        f"Solve this programming problem in Python 3 with the standard library only.\n\n{statement}\n\n{form}\n\n"
        "End your reply with the full solution in one ```python code block; only the last code block is run."
    )
    return [{"role": "user", "content": text}]


BENCHMARK = Benchmark(
    id=ID,
    title="LiveCodeBench",
    capability="Programming, cumulative v6 tasks",
    kind="code",
    counts={"smoke": 2, "quick": 30, "standard": 150},
    weight=Fraction(1, 10),
    source=HubSource("livecodebench/code_generation_lite", "0fe84c3912ea0c4d4a78037083943e8f0c4dd505", FILES),
    adapter_version="livecodebench-1",
    normalizer_version="livecodebench-normalizer-1",
    licence="Stated on the hub as cc; problem statements belong to AtCoder, LeetCode and Codeforces",
    access_note="Open download of several gigabytes. Solutions run in the sandbox only.",
    read_cases=read_cases,
    index=index,
    needs=("sandbox",),
)
