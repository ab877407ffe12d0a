"""Looking at a pinned source again: are our copy, and what its hub states of it, still what was first fetched?"""

from __future__ import annotations

from dataclasses import dataclass

from resources.canonical import content_hash
from resources.errors import IntegrityError, NotFound, SrBenchError
from resources.sources.kept import Kept
from resources.store import Store
from sr_bench_assets.benchmarks.contract import Benchmark, HubSource
from sr_bench_assets.datasets.sources import kept_source, source_cache

GIT_NOTE = "not asked: the hash of a git commit covers its files"


@dataclass(frozen=True)
class SourceObservation:
    """One look at the source that the store keeps for a benchmark."""

    revision: str
    fetched_version: str
    """Content hash of the names and SHA-256s of the first fetch: `files_sha256` in the manifests made of it."""
    observed_version: str
    """The same of what was found now; equal to `fetched_version` exactly when nothing differs."""
    differences: tuple[str, ...]
    """One sentence per file that differs."""
    upstream: str
    """`unchanged`, `changed`, or why it was not asked or did not answer."""


def observe_source(store: Store, benchmark: Benchmark, *, ask_hub: bool = True) -> SourceObservation | None:
    """Hash our copy and, with `ask_hub`, compare it with what the hub states at the pinned revision.

    Downloads nothing. None where the store never fetched the source. A hub that cannot be reached or refuses us is
    no difference; it is named in `upstream`.
    """
    kept = kept_source(store, benchmark)
    if kept is None:
        return None
    found, differences = _our_copy(kept)
    upstream = GIT_NOTE if not isinstance(benchmark.source, HubSource) else "not asked"
    if ask_hub and isinstance(benchmark.source, HubSource):
        stated, sentences, upstream = _hub(store, benchmark.source, kept, found)
        found = {**found, **stated}
        differences += sentences
    return SourceObservation(
        revision=benchmark.source.revision,
        fetched_version=content_hash([[file.name, file.sha256] for file in kept.files]),
        observed_version=content_hash([[file.name, found.get(file.name)] for file in kept.files]),
        differences=tuple(differences),
        upstream=upstream,
    )


def _our_copy(kept: Kept) -> tuple[dict[str, str], list[str]]:
    """Name → hash of what is there, and what differs from the first fetch."""
    now = kept.now()
    found = {name: file.sha256 for name, file in now.items() if file is not None}
    differences: list[str] = []
    for file in kept.files:
        if file.name not in found:
            differences.append(f"our copy of {file.name} is gone")
        elif found[file.name] != file.sha256:
            differences.append(f"our copy of {file.name} has other bytes (SHA-256 {found[file.name]})")
    return found, differences


def _hub(
    store: Store, source: HubSource, kept: Kept, ours: dict[str, str]
) -> tuple[dict[str, str], list[str], str]:
    """Name → what the hub states instead, a sentence for each, and how the hub answered. `ours`: our copy now."""
    from resources.sources.hub import stated_by_hub

    names = [file.name for file in kept.files]
    try:
        stated = stated_by_hub(source_cache(store), source.repo_id, source.revision, names)
    except (IntegrityError, NotFound) as error:
        # Another commit in the pinned one's place, or a file that is gone, is a change; an outage is none.
        return dict.fromkeys(names, error.code), [error.message], "changed"
    except SrBenchError as error:
        return {}, [], f"not known: {error.message}"
    changed: dict[str, str] = {}
    for file in kept.files:
        etag, same = stated[file.name]
        # A git blob id can be compared with our copy only, so only while that is still the first fetch.
        if etag != file.sha256 and (len(etag) == 64 or (ours.get(file.name) == file.sha256 and not same)):
            changed[file.name] = etag
    sentences = [f"the hub now states other bytes for {name}: {etag}" for name, etag in changed.items()]
    return changed, sentences, "changed" if changed else "unchanged"
