"""τ³-bench, the text tasks of tau2-bench 1.0: Evaluating Conversational Agents in a Dual-Control Environment.

Victor Barres, Honghua Dong, Soham Ray, Xujie Si, Karthik Narasimhan (Sierra, 2025)
https://arxiv.org/abs/2506.07982
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

from resources.errors import SrBenchError
from sr_bench_assets.benchmarks.contract import Benchmark, Case, GitSource, SourceFiles
from sr_bench_assets.benchmarks.source_tables import the_file, tree_bytes

ID = "tau3"
ROOT = "data/tau2/domains"
DOMAINS = ("airline", "retail", "telecom")
SPLIT = "base"
POLICIES = {
    "airline": ("policy.md",),
    "retail": ("policy.md",),
    "telecom": ("main_policy.md", "tech_support_manual.md"),
}
"""What the agent is told of its work, as release 1.0.1 composes it."""
RELEASE = "1.0.1"


def read_cases(files: SourceFiles, seed: int) -> Iterable[Case]:
    """The tasks of each domain's base split. Criteria, start state and notes on a task's purpose are labels: they
    give away what the agent should do."""
    for domain in DOMAINS:
        path = the_file(files, f"{ROOT}/{domain}/tasks.json")
        splits = _json(the_file(files, f"{ROOT}/{domain}/split_tasks.json"))
        base = splits.get(SPLIT) if isinstance(splits, dict) else None
        if not isinstance(base, list):
            _refuse(domain, f"has no split {SPLIT!r} in split_tasks.json")
        tasks = {_id(domain, task): task for task in _list(domain, _json(path))}
        for native in map(str, base):
            if native not in tasks:
                _refuse(domain, f"has no task {native!r}, which its base split names")
            yield _case(domain, native, tasks[native])


def _case(domain: str, native: str, task: dict[str, Any]) -> Case:
    scenario, criteria = task.get("user_scenario"), task.get("evaluation_criteria")
    if not isinstance(scenario, dict) or not isinstance(criteria, dict):
        _refuse(domain, f"has a task {native!r} without user_scenario or evaluation_criteria")
    return Case(
        id=f"{ID}/{domain}/{native}",
        benchmark=ID,
        category=domain,
        messages=[],
        input={"domain": domain, "task_id": native, "user_scenario": scenario, "ticket": task.get("ticket")},
        reference={
            "evaluation_criteria": criteria,
            "initial_state": task.get("initial_state"),
            "description": task.get("description"),
        },
    )


def visible_files(case: Case) -> list[str]:
    """The policy that the agent works by; its scenario stands in the case itself."""
    return [f"{ROOT}/{case.category}/{name}" for name in POLICIES[case.category]]


def _json(path: Path) -> Any:
    try:
        return json.loads(tree_bytes(path))
    except ValueError as error:
        raise SrBenchError(
            f"{path.name} is no JSON: {error}",
            field="source_path",
            mend="restore it from the pinned revision",
        ) from error


def _list(domain: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        _refuse(domain, "has a tasks.json that is no list")
    return value


def _id(domain: str, task: Any) -> str:
    if not isinstance(task, dict) or not isinstance(task.get("id"), str | int):
        _refuse(domain, "has a task without an id")
    return str(task["id"])


def _refuse(domain: str, what: str) -> NoReturn:
    raise SrBenchError(
        f"domain {domain} {what}", field="source_path", mend=f"use a checkout of tau2-bench {RELEASE}"
    )


BENCHMARK = Benchmark(
    id=ID,
    title="τ³-bench",
    capability="τ³ text interaction, three domains",
    kind="agent",
    counts={"smoke": 3, "quick": 12, "standard": 60},
    weight=Fraction(1, 10),
    source=GitSource(
        "https://github.com/sierra-research/tau2-bench",
        "fc0055dc4e0a316c3f83133267fbd6faaa770992",
        tuple(f"{ROOT}/{domain}" for domain in DOMAINS),
    ),
    adapter_version="tau3-1",
    normalizer_version="tau3-normalizer-1",
    licence="MIT",
    access_note="Open repository. Needs a fixed user simulator.",
    read_cases=read_cases,
    visible_files=visible_files,
    selection_order="round_robin",
    needs=("simulator", "harness"),
    required_options={"release": RELEASE},
)
