"""The selection vectors: the cases of all nine benchmarks, from source files in the upstreams' own layout."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from sr_bench_assets.benchmarks.contract import Benchmark, HubSource, SourceFiles, index_cases
from sr_bench_assets.benchmarks.registry import get_benchmark
from sr_bench_assets.datasets.selection import select
from tests.requirement import missing

ROOT = Path(__file__).parents[2]
SOURCES = Path(os.environ.get("SR_BENCH_TEST_SOURCES", ROOT.parent / "shared" / "sources"))
CASES = json.loads((Path(__file__).parent / "data" / "selection.json").read_text("utf-8"))["cases"]
CHECKOUTS = {
    "arc-agi-2": "git/arcprize/ARC-AGI-2",
    "tau3": "git/sierra-research/tau2-bench",
    "terminal-bench-2.1": "git/harbor-framework/terminal-bench-2.1",
}


def source_of(benchmark: Benchmark) -> SourceFiles:
    if not SOURCES.is_dir():
        missing("sources", "set SR_BENCH_TEST_SOURCES to the folder with the test sources")
    source = benchmark.source
    if isinstance(source, HubSource):
        root = SOURCES / "hf" / source.repo_id
        return SourceFiles(root, {name: root / name for name in source.files})
    root = SOURCES / CHECKOUTS[benchmark.id]
    files = sorted(path for path in root.rglob("*") if path.is_file())
    return SourceFiles(root, {path.relative_to(root).as_posix(): path for path in files})


def joined_hash(parts: list[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_vector(case: dict[str, Any]) -> None:
    benchmark, expect = get_benchmark(case["benchmark"]), case["expect"]
    index = index_cases(benchmark, source_of(benchmark), case["seed"])
    selection = select(
        index.keys,
        seed=case["seed"],
        profile=case["profile"],
        counts=benchmark.counts,
        order=benchmark.selection_order,
    )
    built = index.build(selection.positions)
    ids = [each.id for each in built]

    assert ids == [index.keys[position].id for position in selection.positions]
    assert len(ids) == expect["count"]
    assert ids[: len(expect.get("first_ids", []))] == expect.get("first_ids", [])
    assert joined_hash(ids) == expect["ids_sha256"]
    if "answers_sha256" in expect:
        assert joined_hash([each.reference["answer"] for each in built]) == expect["answers_sha256"]
