"""Preparing datasets: verified source → selection → frozen cases, one benchmark at a time, then composed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from resources.errors import SrBenchError
from resources.sources.kept import remember_import
from resources.store import Store
from sr_bench_assets.benchmarks.contract import Benchmark, CaseIndex, index_cases
from sr_bench_assets.benchmarks.registry import get_benchmark
from sr_bench_assets.datasets.artifact import (
    DatasetManifest,
    ExclusionRecord,
    Preparation,
    SelectionRecord,
    SourceRecord,
    encode_case,
    lines_sha256,
    publish,
    split_of,
)
from sr_bench_assets.datasets.combination import combine
from sr_bench_assets.datasets.exclusions import Snapshot, excluded_cases, read_snapshot
from sr_bench_assets.datasets.identity import source_identity, task_identities, with_identity
from sr_bench_assets.datasets.request import PreparationRequest
from sr_bench_assets.datasets.requirements import installed_needs
from sr_bench_assets.datasets.reuse import pinned_datasets, reusable
from sr_bench_assets.datasets.selection import SELECTION_RULE, Selection, select
from sr_bench_assets.datasets.sources import (
    LocalImport,
    fetch_source,
    source_cache,
    source_files,
    source_record,
)

StageProgress = Callable[[str, str, int, int | None], None]
"""Called with (stage, what, done, total); stages are reuse, install, download, freeze, combine."""

HOLDOUT_DISCLOSURE = (
    "{benchmark}: its tasks exclude the named history only. That is a finite local claim: it certifies neither a "
    "complete history of browsing or human exposure, nor the absence of upstream contamination."
)
RETEST_DISCLOSURE = (
    "{benchmark}: an explicit retest. Its tasks may have been seen before; its result must stay apart from any "
    "result that is claimed to be unseen."
)


def silent(stage: str, what: str, done: int, total: int | None) -> None:
    """Tells nobody."""


def prepare(store: Store, request: PreparationRequest, progress: StageProgress = silent) -> DatasetManifest:
    """Prepare, verify and publish what is asked for; several benchmarks become one combined dataset.

    Verified datasets of the same pinned sources, profile and seed are reused without any download; the missing
    ones are prepared. Every problem is raised before anything is published under the final identity.
    """
    wanted = [get_benchmark(benchmark) for benchmark in request.benchmarks]
    snapshot = None if request.exclusion_snapshot is None else read_snapshot(request.exclusion_snapshot)
    found = pinned_datasets(store, request.reuse, request.benchmarks, request.profile, request.seed)
    parts: list[DatasetManifest] = []
    for benchmark in wanted:
        existing = found.get(benchmark.id) or _reusable(store, benchmark, request)
        if existing is not None:
            progress("reuse", benchmark.id, existing.counts[benchmark.id], existing.counts[benchmark.id])
            parts.append(existing)
        else:
            parts.append(prepare_one(store, benchmark, request, snapshot, progress))
    if len(parts) > 1:
        progress("combine", ", ".join(request.benchmarks), len(parts), len(parts))
    return combine(store, parts, only=request.benchmarks)


def prepare_one(
    store: Store,
    benchmark: Benchmark,
    request: PreparationRequest,
    snapshot: Snapshot | None = None,
    progress: StageProgress = silent,
) -> DatasetManifest:
    """Fetch (or take from the verified cache), select and publish one benchmark of the request."""
    local = None
    if request.source_path is not None and request.revision is not None:
        local = LocalImport(request.source_path, request.revision)
    needed = installed_needs(benchmark, request.source_path)
    progress("install", f"{', '.join(needed)} (present)", len(needed), len(needed))
    if local is None:
        progress("download", benchmark.source.url, 0, None)
    fetched = fetch_source(
        store, benchmark, local, lambda what, done, total: progress("download", what, done, total)
    )
    source = source_record(
        benchmark, fetched, source_partition=request.source_partition, sample_data=request.sample_data
    )
    if fetched.kind == "local":
        remember_import(source_cache(store), source.files_sha256, fetched.root)
    progress("freeze", benchmark.id, 0, None)
    index = index_cases(benchmark, source_files(fetched), request.seed)
    chosen = _choose(benchmark, index, source, request, snapshot)
    return publish(store, chosen.lines, _facts(benchmark, source, chosen, request))


@dataclass(frozen=True)
class _Chosen:
    selection: Selection
    source_cases: int
    limit: int | None
    lines: list[bytes]
    exclusion: ExclusionRecord | None = None


def _choose(
    benchmark: Benchmark,
    index: CaseIndex,
    source: SourceRecord,
    request: PreparationRequest,
    snapshot: Snapshot | None,
) -> _Chosen:
    identity = source_identity(benchmark.id, source)
    tasks = {} if identity is None else task_identities(index.keys, identity)
    history: set[str] = set()
    if snapshot is not None and identity is not None:
        history = excluded_cases(snapshot, identity, tasks)
    limit = _effective_limit(benchmark, request)
    try:
        selection = select(
            index.keys,
            seed=request.seed,
            profile=request.profile,
            counts=benchmark.counts,
            order=benchmark.selection_order,
            excluded_ids=history,
            limit=limit,
        )
    except SrBenchError as error:
        raise SrBenchError(
            f"{benchmark.id}: {error.message}",
            code=error.code,
            field=error.field,
            mend=error.mend or (_mend_shortfall(request, snapshot) if error.field == "profile" else None),
        ) from error
    cases = index.build(selection.positions)
    if identity is not None:
        cases = [with_identity(case, identity, tasks[case.id]) for case in cases]
    exclusion = None
    if snapshot is not None:
        exclusion = _exclusion(benchmark, index, selection, snapshot, history)
    return _Chosen(selection, len(index.keys), limit, [encode_case(case) for case in cases], exclusion)


def _exclusion(
    benchmark: Benchmark, index: CaseIndex, selection: Selection, snapshot: Snapshot, history: set[str]
) -> ExclusionRecord:
    quick = min(benchmark.counts["quick"], len(index.keys))
    excluded = quick + selection.excluded
    return ExclusionRecord(
        snapshot_sha256=snapshot.snapshot_sha256,
        references=tuple(f"{r.kind}:{r.id}" for r in snapshot.references),
        available=len(index.keys),
        quick=quick,
        history=len(history),
        excluded=excluded,
        remaining=len(index.keys) - excluded,
        selected=len(selection.positions),
    )


def _facts(
    benchmark: Benchmark, source: SourceRecord, chosen: _Chosen, request: PreparationRequest
) -> dict[str, Any]:
    name, role = benchmark.id, request.evaluation_role
    if role is None and request.exclusion_snapshot is not None:
        role = "holdout"
    disclosure = {"holdout": HOLDOUT_DISCLOSURE, "retest": RETEST_DISCLOSURE, None: ""}[role]
    return {
        "profile": request.profile,
        "split": split_of(request.profile),
        "seed": request.seed,
        "benchmarks": (name,),
        "counts": {name: len(chosen.lines)},
        "case_sha256": {name: lines_sha256(chosen.lines)},
        "sources": {name: source},
        "selection": {
            name: SelectionRecord(
                rule=f"{SELECTION_RULE}/{benchmark.selection_order}",
                source_cases=chosen.source_cases,
                requested=benchmark.counts[request.profile] if chosen.limit is None else chosen.limit,
                limit=chosen.limit,
                strata={stratum: taken for stratum, (_, taken) in chosen.selection.strata.items()},
                source_strata={stratum: size for stratum, (size, _) in chosen.selection.strata.items()},
            )
        },
        "custom_subset": chosen.limit is not None,
        "sample_data": request.sample_data,
        "exclusions": {} if chosen.exclusion is None else {name: chosen.exclusion},
        "evaluation_roles": {} if role is None else {name: role},
        "disclosures": (disclosure.format(benchmark=name),) if disclosure else (),
        "preparation": Preparation(method="prepare"),
    }


def _effective_limit(benchmark: Benchmark, request: PreparationRequest) -> int | None:
    """The limit, or None where it takes nothing away; in a collection it bounds only the larger benchmarks."""
    size = benchmark.counts[request.profile]
    if request.limit is None or request.limit == size:
        return None
    if request.limit > size and len(request.benchmarks) > 1:
        return None
    return request.limit


def _reusable(store: Store, benchmark: Benchmark, request: PreparationRequest) -> DatasetManifest | None:
    plain = (
        request.source_path,
        request.source_partition,
        request.exclusion_snapshot,
        request.evaluation_role,
        request.sample_data,
    )
    if any(value is not None for value in plain):
        return None
    return reusable(
        store,
        benchmark,
        request.profile,
        request.seed,
        _effective_limit(benchmark, request),
        refuse_conflicts=len(request.benchmarks) > 1 and not request.fresh,
        seed_given=request.seed_given,
    )


def _mend_shortfall(request: PreparationRequest, snapshot: Snapshot | None) -> str:
    if snapshot is not None:
        return "Name less history, or prepare an explicit --evaluation-role retest without a snapshot."
    if request.source_path is not None:
        return "Import more tasks, or take a smaller profile or a --limit that the file can fill."
    return "Take a smaller profile."
