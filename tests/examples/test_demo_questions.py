"""The demo's questions: enough, unique, in MMLU-Pro's columns, and rightly answered where it can be checked anew."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from datetime import datetime, timedelta
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from sr_bench_assets.benchmarks.contract import SourceFiles
from sr_bench_assets.benchmarks.mmlu_pro import FILE, read_cases

GENERATOR = Path(__file__).parents[2] / "examples" / "demo" / "generate.py"


def generate(folder: Path) -> Path:
    subprocess.run([sys.executable, GENERATOR, "--output", folder], check=True, stdout=subprocess.DEVNULL)
    return folder / FILE


@pytest.fixture(scope="module")
def parquet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generate(tmp_path_factory.mktemp("demo"))


@pytest.fixture(scope="module")
def rows(parquet: Path) -> list[dict[str, Any]]:
    return pq.read_table(parquet).to_pylist()


def answers_matching(rows: list[dict[str, Any]], pattern: str) -> list[tuple[re.Match[str], str]]:
    """(question, right option) of all questions that match; at least five."""
    found = [
        (match, row["options"][row["answer_index"]])
        for row in rows
        if (match := re.search(pattern, row["question"]))
    ]
    assert len(found) >= 5
    return found


def test_shape(rows: list[dict[str, Any]]) -> None:
    assert len(rows) == 700
    assert set(Counter(row["category"] for row in rows).values()) == {50}
    assert len({row["category"] for row in rows}) == 14
    assert len({row["question"] for row in rows}) == len({row["question_id"] for row in rows}) == 700
    for row in rows:
        assert 4 <= len(row["options"]) == len(set(row["options"])) <= 10
        assert row["answer"] == "ABCDEFGHIJ"[row["answer_index"]]
        assert row["src"] == "sr-bench-demo"


def test_same_seed_same_rows(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    assert pq.read_table(generate(tmp_path)).to_pylist() == rows


def test_read_as_mmlu_pro(parquet: Path) -> None:
    cases = list(read_cases(SourceFiles(parquet.parents[1], {FILE: parquet}), 0))
    assert len({case.messages[0]["content"] for case in cases}) == 700


def test_calendar_answers(rows: list[dict[str, Any]]) -> None:
    pattern = r"^(\d+) (\w+) (\d+) is a (\w+)\. Which weekday is it (\d+) days later"
    for match, right in answers_matching(rows, pattern):
        start = datetime.strptime(f"{match[1]} {match[2]} {match[3]}", "%d %B %Y")
        assert start.strftime("%A") == match[4]
        assert (start + timedelta(int(match[5]))).strftime("%A") == right


def test_power_answers(rows: list[dict[str, Any]]) -> None:
    for match, right in answers_matching(rows, r"remainder of (\d+)\^(\d+) on division by (\d+)"):
        assert int(match[1]) ** int(match[2]) % int(match[3]) == int(right)


def test_search_answers(rows: list[dict[str, Any]]) -> None:
    for match, right in answers_matching(rows, r"looks for (\d+) in \[([\d, ]+)\]"):
        items, wanted = [int(item) for item in match[2].split(", ")], int(match[1])
        looks = 1
        while items[middle := (len(items) - 1) // 2] != wanted:
            items = items[middle + 1 :] if items[middle] < wanted else items[:middle]
            looks += 1
        assert looks == int(right)


def holds(statement: str, world: frozenset[frozenset[str]]) -> bool:
    """Whether a categorical statement holds in a world: the set of kinds-combinations that have members."""
    match = re.fullmatch(r"(All|No|Some) (\w+) are (not )?(\w+)(?: and (\w+))?\.", statement)
    assert match is not None
    needed = {match[4], match[5]} - {None}
    inside = [member for member in world if match[2] in member]
    if match[1] == "All":
        return all(needed <= member for member in inside)
    some = any((needed <= member) != bool(match[3]) for member in inside)
    return some if match[1] == "Some" else not some


def test_syllogisms_have_one_valid_conclusion(rows: list[dict[str, Any]]) -> None:
    asked = [row for row in rows if "Which conclusion follows by necessity" in row["question"]]
    assert len(asked) >= 5
    for row in asked:
        premises = re.findall(r"(?:All|No|Some) \w+ are (?:not )?\w+\.", row["question"])
        subject = re.search(r"There are some (\w+)\.", row["question"])
        assert subject is not None
        kinds = sorted(set(re.findall(r"\w+s\b", " ".join(premises))))
        regions = [frozenset(part) for size in range(len(kinds) + 1) for part in combinations(kinds, size)]
        worlds = [
            frozenset(world)
            for size in range(len(regions) + 1)
            for world in combinations(regions, size)
            if any(subject[1] in member for member in world)
        ]
        possible = [world for world in worlds if all(holds(premise, world) for premise in premises)]
        assert possible
        valid = [option for option in row["options"] if all(holds(option, world) for world in possible)]
        assert valid == [row["options"][row["answer_index"]]]
