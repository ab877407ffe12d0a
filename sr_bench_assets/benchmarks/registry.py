"""Which benchmarks there are: the nine built-ins, and plug-ins that other distributions register.

A plug-in is an instance of `Benchmark` under the entry-point group `sr_bench.benchmarks`; manifests can only name ids.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points

from resources.errors import NotFound, SrBenchError
from sr_bench_assets.benchmarks.contract import Benchmark

GROUP = "sr_bench.benchmarks"
_HERE = "sr_bench_assets.benchmarks"
# The same table as in pyproject.toml, so that a source tree that is not installed works too.
BUILT_IN = {
    "mmlu-pro": f"{_HERE}.mmlu_pro:BENCHMARK",
    "gpqa-diamond": f"{_HERE}.gpqa_diamond:BENCHMARK",
    "hle": f"{_HERE}.hle:BENCHMARK",
    "livecodebench": f"{_HERE}.livecodebench:BENCHMARK",
    "scicode": f"{_HERE}.scicode:BENCHMARK",
    "terminal-bench-2.1": f"{_HERE}.terminal_bench:BENCHMARK",
    "simpleqa-verified": f"{_HERE}.simpleqa_verified:BENCHMARK",
    "arc-agi-2": f"{_HERE}.arc_agi_2:BENCHMARK",
    "tau3": f"{_HERE}.tau3:BENCHMARK",
}


def benchmarks() -> dict[str, Benchmark]:
    """All benchmarks by id: the nine first, in the order of the protocol, then plug-ins by id."""
    return {id: get_benchmark(id) for id in benchmark_ids()}


def benchmark_ids() -> list[str]:
    """The ids of all benchmarks, without loading any."""
    return [*BUILT_IN, *sorted(_plug_ins())]


def get_benchmark(id: str) -> Benchmark:
    """The benchmark `id`. Raises `NotFound` (naming the known ids) or `SrBenchError` for a broken plug-in."""
    if id in BUILT_IN:
        module, _, name = BUILT_IN[id].partition(":")
        return getattr(import_module(module), name)
    point = _plug_ins().get(id)
    if point is None:
        raise NotFound(
            f"there is no benchmark {id!r}",
            field="benchmark",
            mend=f"choose one of {', '.join(benchmark_ids())}",
        )
    return _load(point)


@cache
def _plug_ins() -> dict[str, EntryPoint]:
    """Entry points of other distributions by id; refuses two of one id and the ids of built-ins."""
    found: dict[str, EntryPoint] = {}
    for point in entry_points(group=GROUP):
        if BUILT_IN.get(point.name) == point.value:
            continue
        if point.name in BUILT_IN or (point.name in found and found[point.name].value != point.value):
            raise SrBenchError(
                f"{_origin(point)} registers a benchmark {point.name!r}, an id that is taken",
                mend="uninstall one of the two or give the plug-in an id of its own",
            )
        found[point.name] = point
    return found


def _load(point: EntryPoint) -> Benchmark:
    try:
        benchmark = point.load()
    except Exception as error:
        raise SrBenchError(
            f"the benchmark plug-in {point.name!r} of {_origin(point)} cannot be loaded: {error}",
            mend="repair or uninstall that distribution",
        ) from error
    if not isinstance(benchmark, Benchmark) or benchmark.id != point.name:
        raise SrBenchError(
            f"{_origin(point)} registers {point.name!r}, but {point.value} is no Benchmark with that id",
            mend="register an instance of Benchmark under its own id",
        )
    return benchmark


def _origin(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "an unknown distribution"
