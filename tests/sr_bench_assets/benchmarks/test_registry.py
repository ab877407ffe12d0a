"""Which benchmarks there are, built in and plugged in."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from resources.errors import NotFound, SrBenchError
from sr_bench_assets.benchmarks import registry
from sr_bench_assets.benchmarks.contract import PROFILES, SourceFiles, index_cases
from sr_bench_assets.datasets.selection import select

ROOT = Path(__file__).parents[3]
PLUGIN = ROOT / "examples" / "benchmark-plugin"


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    """Make a distribution with the given entry points importable, as an installer leaves it on the path."""

    def distribution(name: str, points: dict[str, str], package: Path | None = None) -> None:
        info = tmp_path / f"{name}-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        lines = "".join(f"{id} = {value}\n" for id, value in points.items())
        (info / "entry_points.txt").write_text(f"[{registry.GROUP}]\n{lines}")
        monkeypatch.syspath_prepend(str(tmp_path))
        if package is not None:
            monkeypatch.syspath_prepend(str(package))
        registry._plug_ins.cache_clear()

    yield distribution
    monkeypatch.undo()
    registry._plug_ins.cache_clear()


def test_the_nine_have_the_protocols_counts_and_weights() -> None:
    nine = {id: registry.get_benchmark(id) for id in registry.BUILT_IN}
    totals = [sum(benchmark.counts[profile] for benchmark in nine.values()) for profile in PROFILES]
    assert totals == [36, 740, 3183]
    assert sum(benchmark.weight for benchmark in nine.values()) == 1
    assert {id for id in nine if nine[id].weight == Fraction(3, 20)} == {"gpqa-diamond", "hle"}
    assert all(benchmark.id == id for id, benchmark in nine.items())


def test_the_packaging_registers_the_same_nine() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"][registry.GROUP] == registry.BUILT_IN


def test_an_unknown_id_names_the_known_ones() -> None:
    with pytest.raises(NotFound) as caught:
        registry.get_benchmark("mmlu")
    assert "mmlu-pro" in (caught.value.mend or "")


def test_the_example_plug_in_is_found_read_and_graded(install, tmp_path: Path, monkeypatch) -> None:
    project = tomllib.loads((PLUGIN / "pyproject.toml").read_text())["project"]
    install("sr_bench_mental_arithmetic", project["entry-points"][registry.GROUP], PLUGIN)
    benchmark = registry.benchmarks()["mental-arithmetic"]

    from mental_arithmetic.make_tasks import tasks  # pyright: ignore[reportMissingImports]  (on the path since install)

    path = tmp_path / "tasks.jsonl"
    path.write_text("".join(json.dumps(task) + "\n" for task in tasks()))
    index = index_cases(benchmark, SourceFiles(tmp_path, {"tasks.jsonl": path}), 1)
    selection = select(index.keys, seed=1, profile="standard", counts=benchmark.counts)
    cases = index.build(selection.positions)
    assert len(cases) == 20
    assert benchmark.grade is not None
    assert benchmark.grade(cases[0], f"Answer: {cases[0].reference['answer']}").correct is True


def test_a_plug_in_cannot_take_the_id_of_another(install) -> None:
    install("impostor", {"mmlu-pro": "impostor:BENCHMARK"})
    with pytest.raises(SrBenchError, match="impostor registers a benchmark 'mmlu-pro'"):
        registry.benchmarks()


@pytest.mark.parametrize("value", ["nowhere_at_all:BENCHMARK", "json:loads"])
def test_a_broken_plug_in_is_named_and_leaves_the_others_alone(install, value: str) -> None:
    install("broken", {"broken-bench": value})
    with pytest.raises(SrBenchError, match="broken"):
        registry.get_benchmark("broken-bench")
    assert registry.get_benchmark("mmlu-pro").id == "mmlu-pro"
