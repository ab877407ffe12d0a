"""Tiny sources of our own in the native columns of the nine upstreams."""

from __future__ import annotations

import base64
import csv
import json
import pickle
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sr_bench_assets.benchmarks.contract import SourceFiles

LABEL = "zyxlabel"
"""Stands in every label of every source below, and must stand in no visible part of any case."""


def files(root: Path, contents: dict[str, str | bytes]) -> SourceFiles:
    for name, content in contents.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return SourceFiles(root, {name: root / name for name in contents})


def lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def parquet(root: Path, name: str, rows: list[dict[str, Any]]) -> SourceFiles:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)
    return SourceFiles(root, {name: path})


def table(root: Path, name: str, rows: list[dict[str, str]]) -> SourceFiles:
    path = root / name
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return SourceFiles(root, {name: path})


MMLU_ROW = {
    "question_id": 7,
    "question": " Which\nmetal? ",
    "options": ["iron ", "tin", "gold"],
    "answer": "C",
    "answer_index": 0,
    "cot_content": LABEL,
    "category": "chemistry",
    "src": "own",
}


def mmlu_pro(root: Path) -> SourceFiles:
    return parquet(root, "data/test-00000-of-00001.parquet", [MMLU_ROW, {**MMLU_ROW, "question_id": 8}])


GPQA_ROW = {
    "Question": "Which one?\n",
    "Correct Answer": "right\n",
    "Incorrect Answer 1": "wrong 1",
    "Incorrect Answer 2": "wrong 2",
    "Incorrect Answer 3": "wrong 3",
    "Explanation": LABEL,
    "Subdomain": "Optics",
}


def gpqa_diamond(root: Path) -> SourceFiles:
    return table(root, "gpqa_diamond.csv", [GPQA_ROW, {**GPQA_ROW, "Question": "And this one?"}])


def hle(root: Path) -> SourceFiles:
    row = {"id": "h1", "question": "How many?", "image": "", "answer": LABEL, "answer_type": "exactMatch"}
    rest = {"rationale": LABEL, "category": "Math", "canary": "c"}
    image = {"id": "h2", "image": "data:image/png;base64,AAAA"}
    return parquet(
        root,
        "data/test-00000-of-00001.parquet",
        [{**row, **rest}, {**row, **rest, **image}, {**row, **rest, "id": "h3"}],
    )


def simpleqa_verified(root: Path) -> SourceFiles:
    row = {"original_index": "5", "problem": "Who, and when?", "answer": LABEL, "topic": "Art", "urls": LABEL}
    return table(root, "simpleqa_verified.csv", [row, {**row, "topic": "Sports"}])


def hidden(tests: list[dict[str, str]]) -> str:
    return base64.b64encode(zlib.compress(pickle.dumps(json.dumps(tests)))).decode()


LCB_ROW = {
    "question_title": "Add",
    "question_content": "Add two numbers.",
    "platform": "atcoder",
    "question_id": "abc1",
    "contest_date": "2024-01-01T00:00:00",
    "starter_code": "",
    "difficulty": "easy",
    "public_test_cases": json.dumps([{"input": "1 2", "output": "3", "testtype": "stdin"}]),
    "private_test_cases": hidden([{"input": "3 4", "output": LABEL, "testtype": "stdin"}]),
    "metadata": '{"func_name": "add"}',
}


def livecodebench(root: Path) -> SourceFiles:
    names = [f"test{n}.jsonl" for n in ("", 2, 3, 4, 5, 6)]
    return files(
        root,
        {
            name: lines([{**LCB_ROW, "question_id": f"{n}a"}])
            + "\n"
            + lines([{**LCB_ROW, "question_id": f"{n}b"}])
            for n, name in enumerate(names)
        },
    )


SCICODE_ROW = {
    "problem_name": "Waves",
    "problem_id": "12",
    "problem_description_main": "Simulate waves.",
    "problem_background_main": "",
    "problem_io": "io",
    "required_dependencies": "import numpy as np",
    "sub_steps": [
        {
            "step_number": f"12.{n}",
            "step_description_prompt": "Step.",
            "step_background": None,
            "function_header": "def f():",
            "return_line": None,
            "test_cases": [f"assert f() == '{LABEL}'"],
            "ground_truth_code": LABEL,
        }
        for n in (1, 2)
    ],
    "general_tests": [LABEL],
    "general_solution": LABEL,
}


def scicode(root: Path) -> SourceFiles:
    return files(
        root,
        {
            "problems_test.jsonl": lines(
                [SCICODE_ROW, {**SCICODE_ROW, "problem_id": "13", "domain": "Physics"}]
            )
        },
    )


def terminal_bench(root: Path) -> SourceFiles:
    tree = {
        "instruction.md": "Repair it.\n",
        "task.toml": '[metadata]\ndifficulty = "easy"\n[agent]\ntimeout_sec = 900.0\n',
        "environment/Dockerfile": "FROM scratch\n",
        "solution/solve.sh": LABEL,
        "tests/test.sh": LABEL,
    }
    tasks = {
        f"tasks/{task}/{name}": content for task in ("repair-b", "repair-a") for name, content in tree.items()
    }
    return files(root, {**tasks, "tasks/README.md": "not a task"})


def tau3(root: Path) -> SourceFiles:
    task = {
        "description": {"purpose": LABEL},
        "user_scenario": {"instructions": {"reason_for_call": "You want a refund."}},
        "initial_state": {"initialization_actions": [LABEL]},
        "evaluation_criteria": {"actions": [{"name": LABEL}]},
    }
    contents: dict[str, str | bytes] = {}
    for domain in ("airline", "retail", "telecom"):
        folder = f"data/tau2/domains/{domain}"
        contents[f"{folder}/tasks.json"] = json.dumps([{**task, "id": n} for n in ("0", "1", "[x]y|z")])
        contents[f"{folder}/split_tasks.json"] = json.dumps({"base": ["0", "[x]y|z"], "train": ["1"]})
    return files(root, contents)


def arc_agi_2(root: Path) -> SourceFiles:
    puzzle = {
        "train": [{"input": [[1, 2]], "output": [[2, 1]]}],
        "test": [{"input": [[3, 4]], "output": [[4, 3]]}, {"input": [[5, 6]], "output": [[6, 5]]}],
    }
    return files(root, {f"data/evaluation/{stem}.json": json.dumps(puzzle) for stem in ("bb", "aa")})


SOURCES: dict[str, Callable[[Path], SourceFiles]] = {
    "mmlu-pro": mmlu_pro,
    "gpqa-diamond": gpqa_diamond,
    "hle": hle,
    "livecodebench": livecodebench,
    "scicode": scicode,
    "terminal-bench-2.1": terminal_bench,
    "simpleqa-verified": simpleqa_verified,
    "arc-agi-2": arc_agi_2,
    "tau3": tau3,
}
