"""How the sets of one source and seed must lie to each other: smoke within quick, standard apart from both."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import orjson

from resources.errors import SrBenchError
from resources.store import Store
from sr_bench_assets.benchmarks.contract import Profile
from sr_bench_assets.datasets.artifact import DatasetManifest, list_datasets, read_lines


@dataclass(frozen=True)
class NamedSet:
    """The case ids that one dataset holds of a benchmark."""

    dataset_id: str
    profile: Profile
    ids: frozenset[str]


def split_conflicts(profile: Profile, ids: Collection[str], others: Iterable[NamedSet]) -> list[str]:
    """One sentence per other set that does not lie to this one as the selection rule says; empty where all do.

    smoke and quick are prefixes of one order, so the smaller lies within the larger; standard begins after quick.
    """
    own = frozenset(ids)
    conflicts: list[str] = []
    for other in others:
        if "standard" not in (profile, other.profile):
            smaller, larger = sorted((own, other.ids), key=len)
            outside = len(smaller - larger)
            if outside:
                conflicts.append(
                    f"{outside} cases of the smaller set are not in the larger: {profile} and "
                    f"{other.profile} {other.dataset_id[:12]}"
                )
        elif profile != other.profile and own & other.ids:
            conflicts.append(
                f"{len(own & other.ids)} cases are in {profile} and in {other.profile} {other.dataset_id[:12]}"
            )
    return conflicts


def sets_to_compare(store: Store, manifest: DatasetManifest, benchmark: str) -> list[NamedSet]:
    """The store's other sets of this benchmark with the same source bytes, reader, rule and seed; one of each
    content. A dataset that cannot be read is left out: it has checks of its own."""
    found: dict[str, NamedSet] = {}
    for other in list_datasets(store):
        if benchmark not in other.benchmarks or _origin(other, benchmark) != _origin(manifest, benchmark):
            continue
        content = other.case_sha256[benchmark]
        if content == manifest.case_sha256[benchmark] or content in found:
            continue
        try:
            cases = map(orjson.loads, read_lines(other.path, other.sha256))
        except SrBenchError:
            continue
        ids = frozenset(case["id"] for case in cases if case["benchmark"] == benchmark)
        found[content] = NamedSet(other.id, other.profile, ids)
    return list(found.values())


def _origin(manifest: DatasetManifest, benchmark: str) -> tuple[str, str, str, int]:
    source = manifest.sources[benchmark]
    rule = manifest.selection[benchmark].rule
    return source.files_sha256, source.normalizer_version, rule, manifest.seed
