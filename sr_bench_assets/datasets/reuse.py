"""Which prepared datasets answer a request as they are, and which only look like it."""

from __future__ import annotations

from collections.abc import Sequence

from resources.errors import SrBenchError
from resources.store import Store
from sr_bench_assets.benchmarks.contract import Benchmark, Profile
from sr_bench_assets.datasets.artifact import (
    DatasetManifest,
    SourceRecord,
    list_datasets,
    load_manifest,
    read_lines,
)


def pinned_datasets(
    store: Store, ids: Sequence[str], wanted: Sequence[str], profile: Profile, seed: int
) -> dict[str, DatasetManifest]:
    """Benchmark → the dataset that a person named for it (`--reuse`), verified against the request."""
    found: dict[str, DatasetManifest] = {}
    for dataset_id in ids:
        manifest = load_manifest(store, dataset_id)
        for name, asked, has in (("profile", profile, manifest.profile), ("seed", seed, manifest.seed)):
            if asked != has:
                raise SrBenchError(
                    f"The dataset {manifest.id[:12]} has {name} {has}, the request {asked}.",
                    code=f"{name}_conflict",
                    field="--reuse",
                    mend=f"Ask for --{name} {has}, or leave that dataset out.",
                )
        named = [benchmark for benchmark in manifest.benchmarks if benchmark in wanted]
        if not named:
            raise SrBenchError(
                f"The dataset {manifest.id[:12]} holds none of the benchmarks asked for.",
                field="--reuse",
                mend=f"It holds {', '.join(manifest.benchmarks)}.",
            )
        for benchmark in named:
            other = found.setdefault(benchmark, manifest)
            if other.case_sha256[benchmark] != manifest.case_sha256[benchmark]:
                raise SrBenchError(
                    f"Both {other.id[:12]} and {manifest.id[:12]} hold {benchmark}, with different cases.",
                    code="selection_conflict",
                    field="--reuse",
                    mend="Name one of them.",
                )
    return found


def reusable(
    store: Store,
    benchmark: Benchmark,
    profile: Profile,
    seed: int,
    limit: int | None,
    *,
    refuse_conflicts: bool,
    seed_given: bool,
) -> DatasetManifest | None:
    """The verified dataset of just this benchmark from its pinned source, or None where it must be prepared.

    With `refuse_conflicts` (a collection) sets of this benchmark that differ only in source, or only in a seed
    that nobody asked for, raise SrBenchError: whether they are meant is for a person to say.
    """
    others: list[DatasetManifest] = []
    for manifest in list_datasets(store):
        if (
            manifest.benchmarks != (benchmark.id,)
            or manifest.profile != profile
            or not _plain(manifest, limit)
        ):
            continue
        same_source = is_pinned_source(benchmark, manifest.sources[benchmark.id])
        if same_source and manifest.seed == seed:
            read_lines(manifest.path, manifest.sha256)
            return manifest
        if (manifest.seed == seed) or (same_source and not seed_given):
            others.append(manifest)
    if others and refuse_conflicts:
        raise _conflict(benchmark, seed, others)
    return None


def is_pinned_source(benchmark: Benchmark, source: SourceRecord) -> bool:
    """True where the record states the benchmark's own source, revision and present versions of its readers."""
    return (
        source.kind != "local"
        and source.url == benchmark.source.url
        and source.revision == benchmark.source.revision
        and source.normalizer_version == benchmark.normalizer_version
        and source.adapter_version == benchmark.adapter_version
    )


def _plain(manifest: DatasetManifest, limit: int | None) -> bool:
    (name,) = manifest.benchmarks
    return (
        manifest.selection[name].limit == limit
        and manifest.sample_data is None
        and not manifest.exclusions
        and not manifest.evaluation_roles
        and manifest.sources[name].source_partition is None
    )


def _conflict(benchmark: Benchmark, seed: int, others: list[DatasetManifest]) -> SrBenchError:
    other = others[0]
    source = other.sources[benchmark.id]
    if other.seed != seed:
        return SrBenchError(
            f"The store holds {benchmark.id} with seed {other.seed} ({other.id[:12]}), not with {seed}.",
            code="seed_conflict",
            field="--seed",
            mend=f"Say which is meant: --seed {other.seed} takes what is there, --seed {seed} prepares anew.",
        )
    return SrBenchError(
        f"The store holds {benchmark.id} from another source: {source.url} at {source.revision} "
        f"({other.id[:12]}).",
        code="source_conflict",
        field="--benchmark",
        mend=f"Say which is meant: --reuse {other.id[:12]} takes it, --fresh prepares the pinned source.",
    )
