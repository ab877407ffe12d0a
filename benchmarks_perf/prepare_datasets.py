"""Print what preparing costs: all nine benchmarks × three profiles by import, and MMLU-Pro standard alone.

python benchmarks_perf/prepare_datasets.py SOURCES   (the folder with hf/ and git/ in their upstreams' layout)
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from resources.store import Store
from sr_bench_assets.benchmarks.contract import PROFILES, Benchmark, GitSource
from sr_bench_assets.benchmarks.registry import BUILT_IN, get_benchmark
from sr_bench_assets.datasets.preparation import prepare
from sr_bench_assets.datasets.request import PreparationRequest


def source_path(sources: Path, benchmark: Benchmark) -> Path:
    """Where the stand-in of a benchmark's source lies; the revision of Terminal-Bench there is named 2.1 with a dot."""
    source = benchmark.source
    if not isinstance(source, GitSource):
        return sources / "hf" / source.repo_id
    owner, name = source.url.rstrip("/").split("/")[-2:]
    candidates = [sources / "git" / owner / name, sources / "git" / owner / "terminal-bench-2.1"]
    return next(path for path in candidates if path.is_dir())


def import_one(sources: Path, folder: str, benchmark_id: str, profile: str) -> None:
    """One import into a store of its own."""
    path = source_path(sources, get_benchmark(benchmark_id))
    request = PreparationRequest.model_validate(
        {"benchmarks": (benchmark_id,), "profile": profile, "source_path": str(path), "revision": "perf"}
    )
    manifest = prepare(Store.open(folder), request)
    assert manifest.case_count == get_benchmark(benchmark_id).counts[manifest.profile]


def alone(sources: Path) -> None:
    """CPU and memory of this process over one MMLU-Pro standard import, with and without the imports."""
    import pyarrow.parquet  # noqa: F401  # its import is no part of the figure

    before = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        import_one(sources, folder, "mmlu-pro", "standard")
    cpu = time.process_time() - before
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"mmlu-pro standard: {cpu:.2f} s CPU beyond imports (target 1.5), {memory:.0f} MB at most (target 400)"
    )


def main() -> None:
    sources = Path(sys.argv[1])
    if len(sys.argv) > 2:
        alone(sources)
        return
    subprocess.run([sys.executable, __file__, str(sources), "alone"], check=True)
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        for benchmark_id in BUILT_IN:
            for profile in PROFILES:
                import_one(sources, folder, benchmark_id, profile)
    seconds = time.perf_counter() - started
    print(f"nine benchmarks x three profiles: {seconds:.1f} s (target 30)")


if __name__ == "__main__":
    main()
