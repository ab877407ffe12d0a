"""What reading a source needs to be installed. All of it comes with sr-bench; this finds a damaged installation
before a long download, not after it."""

from __future__ import annotations

import shutil
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from resources.errors import NotFound
from sr_bench_assets.benchmarks.contract import Benchmark, HubSource


def installed_needs(benchmark: Benchmark, source_path: str | None) -> list[str]:
    """Names and versions of the packages and programs that read this source; raises NotFound for a missing one."""
    return [_package(name) for name in _packages(benchmark, source_path)] + [
        _program(name) for name in _programs(benchmark, source_path)
    ]


def _packages(benchmark: Benchmark, source_path: str | None) -> list[str]:
    needed = ["orjson"]
    source = benchmark.source
    if isinstance(source, HubSource):
        if source_path is None:
            needed.append("huggingface_hub")
        named = source_path if source_path and Path(source_path).suffix else source.files[0]
        if named.endswith(".parquet"):
            needed.append("pyarrow")
    return needed


def _programs(benchmark: Benchmark, source_path: str | None) -> list[str]:
    fetched = source_path is None or "://" in source_path
    return ["git"] if fetched and not isinstance(benchmark.source, HubSource) else []


def _package(name: str) -> str:
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError as error:
        raise NotFound(
            f"The package {name}, which reads this source, is not installed.",
            code="missing_package",
            mend=f"Install sr-bench again with its dependencies, or: pip install {name}",
        ) from error


def _program(name: str) -> str:
    if shutil.which(name) is None:
        raise NotFound(
            f"{name} is not installed.",
            code="missing_package",
            mend=f"Install {name}; this source is a git repository.",
        )
    return name
