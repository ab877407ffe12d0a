"""Terminal-Bench 2.1: A Benchmark for AI Agents in Terminal Environments.

The Terminal-Bench Team (Stanford University, Laude Institute and contributors, 2025)
https://www.tbench.ai
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

from resources.canonical import content_hash, sha256_bytes
from resources.errors import SrBenchError
from sr_bench_assets.benchmarks.contract import Benchmark, Case, GitSource, SourceFiles
from sr_bench_assets.benchmarks.source_tables import tree_bytes

ID = "terminal-bench-2.1"
FOLDER = "tasks"
INSTRUCTION = "instruction.md"
CONFIGURATION = "task.toml"
ENVIRONMENT = "environment/"
_HIDDEN_FOLDERS = ("solution/", "tests/")


def read_cases(files: SourceFiles, seed: int) -> Iterable[Case]:
    """One case per task folder. The hash of its whole tree (instruction, environment, tests, solution) is part of
    the case, so a run can prove that it used the same task."""
    tasks: dict[str, dict[str, Path]] = {}
    for name, path in files.files.items():
        folder, _, rest = name.partition("/")
        task, _, inner = rest.partition("/")
        if folder == FOLDER and inner:
            tasks.setdefault(task, {})[inner] = path
    found = [task for task in sorted(tasks) if CONFIGURATION in tasks[task] or INSTRUCTION in tasks[task]]
    if not found:
        _refuse("the source", f"holds no tasks ({FOLDER}/*/{CONFIGURATION})")
    for task in found:
        yield _case(task, tasks[task])


def _case(task: str, tree: Mapping[str, Path]) -> Case:
    for name in (INSTRUCTION, CONFIGURATION):
        if name not in tree:
            _refuse(f"task {task}", f"has no {name}")
        if tree[name].is_symlink():
            _refuse(f"task {task}", f"has a symbolic link as {name}")
    try:
        configuration: dict[str, Any] = tomllib.loads(tree[CONFIGURATION].read_text("utf-8"))
        instruction = tree[INSTRUCTION].read_text("utf-8").strip()
    except ValueError as error:
        _refuse(f"task {task}", f"cannot be read: {error}")
    hashes = {name: sha256_bytes(tree_bytes(tree[name])) for name in sorted(tree)}
    metadata: dict[str, Any] = configuration.get("metadata", {})
    return Case(
        id=f"{ID}/{task}",
        benchmark=ID,
        category="all",
        messages=[],
        input={
            "instruction": instruction,
            "difficulty": metadata.get("difficulty"),
            "subject": metadata.get("category"),
            "tags": metadata.get("tags", []),
            "agent_timeout_s": configuration.get("agent", {}).get("timeout_sec"),
            "environment": configuration.get("environment", {}),
            "environment_files": [name for name in hashes if not name.startswith(_HIDDEN_FOLDERS)],
            "task_tree_sha256": content_hash(hashes),
        },
        reference={"file_sha256": hashes},
    )


def visible_files(case: Case) -> list[str]:
    """The files that the task's container is built from. Solution and tests are never among them."""
    task = case.id.removeprefix(f"{ID}/")
    names: list[str] = case.input["environment_files"]
    return [f"{FOLDER}/{task}/{name}" for name in names if name.startswith(ENVIRONMENT)]


def _refuse(which: str, what: str) -> NoReturn:
    raise SrBenchError(
        f"{which} {what}", field="source_path", mend="restore the tasks folder from the pinned revision"
    )


BENCHMARK = Benchmark(
    id=ID,
    title="Terminal-Bench 2.1",
    capability="Sandboxed terminal tasks",
    kind="agent",
    counts={"smoke": 1, "quick": 3, "standard": 15},
    weight=Fraction(1, 10),
    source=GitSource(
        "https://github.com/harbor-framework/terminal-bench-2-1",
        "7131e4375048a0e408a8fb404b5f499d726b695b",
        (FOLDER,),
    ),
    adapter_version="terminal-bench-2.1-1",
    normalizer_version="terminal-bench-2.1-normalizer-1",
    licence="Apache-2.0",
    access_note="Open repository. Tasks run in their own containers through the Harbor harness.",
    read_cases=read_cases,
    visible_files=visible_files,
    needs=("sandbox", "harness"),
)
