"""The files of agent tasks as a reader may see them: environments and policies, from the source where it is at hand.

Only files that the benchmark declares visible are opened, and only bytes with the hash that the dataset's manifest
records are shown: solutions, tests and criteria have no way out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from resources.canonical import sha256_bytes
from resources.errors import NotFound
from resources.store import Store
from sr_bench_assets.benchmarks.contract import Case
from sr_bench_assets.benchmarks.registry import get_benchmark
from sr_bench_assets.datasets.artifact import DatasetManifest, SourceFile
from sr_bench_assets.datasets.sources import source_root

MAX_TEXT_CHARS = 65_536
MAX_BYTES = 16 << 20


def visible_task_files(store: Store, manifest: DatasetManifest, case: Case) -> list[dict[str, Any]]:
    """{name, sha256, size, text, note} of each file that belongs to the task and may be seen.

    `text` is None where it cannot be shown, and `note` says why: the source is not at hand, the bytes are not those
    of the dataset, or they are no text. `note` is None where `text` is whole.
    """
    try:
        benchmark = get_benchmark(case.benchmark)
    except NotFound:
        return []  # a plug-in that is no longer installed
    if benchmark.visible_files is None:
        return []
    record = manifest.sources[case.benchmark]
    known = {file.name: file for file in record.files}
    root = source_root(store, benchmark, record)
    return [_shown(root, known[name]) for name in benchmark.visible_files(case) if name in known]


def _shown(root: Path | None, file: SourceFile) -> dict[str, Any]:
    text, note = _text(root, file)
    return {"name": file.name, "sha256": file.sha256, "size": file.size, "text": text, "note": note}


def _text(root: Path | None, file: SourceFile) -> tuple[str | None, str | None]:
    if root is None:
        return None, "the source is not on this machine"
    path = root / file.name
    if file.size > MAX_BYTES:
        return None, f"{file.size} bytes are too many to show"
    if path.is_symlink():
        return None, "a symbolic link"
    try:
        data = path.read_bytes()
    except OSError:
        return None, "the file is no longer where the source was read"
    if sha256_bytes(data) != file.sha256:
        return None, "the file changed since the dataset was prepared"
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None, "no text"
    if "\0" in text:
        return None, "no text"
    if len(text) > MAX_TEXT_CHARS:
        return text[:MAX_TEXT_CHARS], f"the first {MAX_TEXT_CHARS} of {len(text)} characters"
    return text, None
