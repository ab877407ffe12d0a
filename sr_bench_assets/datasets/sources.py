"""From a benchmark's declared source to verified files and the record of where they came from."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from resources.errors import SrBenchError
from resources.sources.fetched import Fetched, Progress, no_progress
from resources.store import Store
from sr_bench_assets.benchmarks.contract import Benchmark, HubSource, SourceFiles
from sr_bench_assets.datasets.artifact import SourceFile, SourceRecord, source_sha256

if TYPE_CHECKING:
    from resources.sources.kept import Kept

_REMOTE = re.compile(r"^(file|https?|ssh|git)://")


@dataclass(frozen=True)
class LocalImport:
    """Tasks from this machine (a path) or from another git repository (an address) in place of the pinned source."""

    source_path: str
    revision: str


def source_cache(store: Store) -> Path:
    """Where fetched sources are kept, shared by all preparations of a store."""
    return store.root / "sources"


def kept_source(store: Store, benchmark: Benchmark) -> Kept | None:
    """The benchmark's pinned source as it was first fetched into the store; None where it never was."""
    from resources.sources.kept import kept_git, kept_hub

    source = benchmark.source
    if isinstance(source, HubSource):
        return kept_hub(source_cache(store), source.repo_id, source.revision)
    return kept_git(source_cache(store), source.url, source.revision, source.paths)


def kept_record(store: Store, benchmark: Benchmark) -> SourceRecord | None:
    """The record of the pinned source that the store keeps, as of its first fetch; None where it never was."""
    kept, source = kept_source(store, benchmark), benchmark.source
    if kept is None:
        return None
    kind = "hub" if isinstance(source, HubSource) else "git"
    return source_record(benchmark, Fetched(kind, source.url, source.revision, kept.root, kept.files))


def source_root(store: Store, benchmark: Benchmark, record: SourceRecord) -> Path | None:
    """The folder that holds the files of `record` on this machine, if any. Whoever reads them verifies them."""
    from resources.sources.kept import kept_git, kept_hub, kept_import

    cache, source = source_cache(store), benchmark.source
    if record.kind == "local":
        return kept_import(cache, record.files_sha256)
    if isinstance(source, HubSource):
        kept = kept_hub(cache, source.repo_id, record.revision)
    else:
        kept = kept_git(cache, record.url, record.revision, source.paths)
    return None if kept is None else kept.root


def fetch_source(
    store: Store, benchmark: Benchmark, local: LocalImport | None = None, progress: Progress = no_progress
) -> Fetched:
    """The benchmark's pinned source, or the local import in its place; every file is verified and hashed.

    Downloads are kept below `sources/` of the store and shared by concurrent preparations.
    """
    source = benchmark.source
    cache = source_cache(store)
    if local is not None:
        return _import(cache, benchmark, local, progress)
    if isinstance(source, HubSource):
        from resources.sources.hub import fetch_hub

        return fetch_hub(cache, source.repo_id, source.revision, source.files, progress)
    from resources.sources.git import fetch_git

    return fetch_git(cache, source.url, source.revision, source.paths, progress)


def _import(cache: Path, benchmark: Benchmark, local: LocalImport, progress: Progress) -> Fetched:
    from resources.sources.local import import_files, import_tree

    source = benchmark.source
    if _REMOTE.match(local.source_path):
        if isinstance(source, HubSource):
            raise SrBenchError(
                f"{benchmark.id} is read from files, not from a git repository.",
                field="--source-path",
                mend="Give the path of a local file or folder.",
            )
        _refuse_credentials(local.source_path)
        from resources.sources.git import fetch_git

        return fetch_git(cache, local.source_path, local.revision, source.paths, progress)
    path = Path(local.source_path).expanduser()
    if isinstance(source, HubSource):
        return import_files(path, source.files, local.revision)
    return import_tree(path, source.paths, local.revision)


def _refuse_credentials(url: str) -> None:
    if re.match(r"^[a-z]+://[^/]*@", url) and not url.startswith("ssh://"):
        raise SrBenchError(
            "An address with credentials would enter the dataset's manifest.",
            field="--source-path",
            mend="Leave the user and password out; git asks its credential helper.",
        )


def source_files(fetched: Fetched) -> SourceFiles:
    """What a benchmark's reader gets."""
    return SourceFiles(fetched.root, fetched.paths())


def source_record(
    benchmark: Benchmark,
    fetched: Fetched,
    *,
    source_partition: str | None = None,
    sample_data: str | None = None,
) -> SourceRecord:
    """The provenance of one benchmark's cases. Holds no machine path, so equal sources give equal identities."""
    files = tuple(SourceFile(name=f.name, sha256=f.sha256, size=f.size) for f in fetched.files)
    return SourceRecord.model_validate(
        {
            "kind": fetched.kind,
            "url": fetched.url,
            "revision": fetched.revision,
            "files": files,
            "files_sha256": source_sha256(files),
            "licence": benchmark.licence if sample_data is None else "not stated (sample data)",
            "access_note": benchmark.access_note if sample_data is None else "sample data, not the benchmark",
            "normalizer_version": benchmark.normalizer_version,
            "adapter_version": benchmark.adapter_version,
            "source_partition": source_partition,
            "sample_data": sample_data,
        }
    )
