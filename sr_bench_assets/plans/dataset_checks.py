"""Plan checks on the dataset and on what its benchmarks need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from resources.canonical import sha256_bytes
from resources.errors import SrBenchError
from sr_bench_assets.benchmarks.contract import Benchmark, Case
from sr_bench_assets.benchmarks.registry import get_benchmark
from sr_bench_assets.datasets.artifact import (
    DatasetManifest,
    decode_case,
    lines_sha256,
    manifest_beside,
    read_lines,
)
from sr_bench_assets.plans.draft import Draft
from sr_bench_assets.plans.manifest import DatasetRef, PlannedBenchmark

HOLDOUT_PROFILE = "standard"


@dataclass(frozen=True)
class DatasetFacts:
    """A verified dataset as the plan needs it."""

    manifest: DatasetManifest
    case_ids: tuple[str, ...]
    messages_missing: frozenset[str]
    """Benchmarks with a case that has no messages of its own (agents, code)."""
    lines_sha256: Mapping[str, str]
    counts: Mapping[str, int]
    """Both per benchmark, in the order of the file."""


def read_dataset(ref: DatasetRef) -> tuple[DatasetFacts | None, list[SrBenchError]]:
    """The verified dataset of `ref`, or None with what is wrong with it."""
    try:
        lines = read_lines(ref.path, ref.sha256)
        manifest = manifest_beside(ref.path)
        cases = [decode_case(line) for line in lines]
    except SrBenchError as error:
        error.field = error.field or "dataset"
        return None, [error]
    except OSError as error:
        problem = SrBenchError(
            f"The dataset cannot be read: {error.strerror}.",
            field="dataset.path",
            mend="Name a readable cases.jsonl.",
        )
        return None, [problem]
    problems = _consistency(ref, manifest, cases)
    if problems:
        return None, problems
    of: dict[str, list[bytes]] = {}
    for line, case in zip(lines, cases, strict=True):
        of.setdefault(case.benchmark, []).append(line)
    facts = DatasetFacts(
        manifest=manifest,
        case_ids=tuple(case.id for case in cases),
        messages_missing=frozenset(case.benchmark for case in cases if not case.messages),
        lines_sha256={name: lines_sha256(own) for name, own in of.items()},
        counts={name: len(own) for name, own in of.items()},
    )
    return facts, []


def case_ids_sha256(case_ids: tuple[str, ...]) -> str:
    """SHA-256 of the case ids joined by newlines: equal exactly for the same cases in the same order."""
    return sha256_bytes("\n".join(case_ids).encode())


def check_dataset(draft: Draft, manifest: DatasetManifest) -> list[SrBenchError]:
    """Problems between the manifest and the dataset that it names."""
    problems: list[SrBenchError] = []
    if draft.profile is not None and draft.profile != manifest.profile:
        problems.append(
            SrBenchError(
                f"The dataset is one of profile {manifest.profile}, the manifest says {draft.profile}.",
                field="profile",
                mend=f"Set profile: {manifest.profile}, or prepare the dataset for {draft.profile}.",
            )
        )
    if draft.seed is not None and draft.seed != manifest.seed:
        problems.append(
            SrBenchError(
                f"The dataset was prepared with seed {manifest.seed}, the manifest says {draft.seed}.",
                field="seed",
                mend=f"Set seed: {manifest.seed}, or prepare the dataset with --seed {draft.seed}.",
            )
        )
    if (manifest.split == "holdout") != (manifest.profile == HOLDOUT_PROFILE) or (
        manifest.split == "holdout" and draft.profile not in (None, HOLDOUT_PROFILE)
    ):
        problems.append(
            SrBenchError(
                f"The {manifest.split} split does not go with this profile: the holdout is for standard, and "
                "standard for the holdout, only.",
                code="holdout_misuse",
                field="dataset",
                mend="Prepare the dataset of the profile you mean; never tune on standard tasks.",
            )
        )
    return problems


def benchmarks_of(facts: DatasetFacts) -> tuple[dict[str, Benchmark], list[SrBenchError]]:
    """The installed benchmarks of the dataset; a problem for each that is not installed."""
    found: dict[str, Benchmark] = {}
    problems: list[SrBenchError] = []
    for name in facts.counts:
        try:
            found[name] = get_benchmark(name)
        except SrBenchError as error:
            problems.append(
                SrBenchError(
                    error.message, code="unknown_benchmark", field="dataset.benchmarks", mend=error.mend
                )
            )
    return found, problems


def check_benchmarks(
    draft: Draft, facts: DatasetFacts | None, benchmarks: Mapping[str, Benchmark]
) -> list[SrBenchError]:
    """Problems between the manifest and the needs of its benchmarks."""
    problems: list[SrBenchError] = []
    for name, benchmark in benchmarks.items():
        if draft.mode == "preview":
            if facts is not None and name in facts.messages_missing:
                problems.append(_no_preview(name))
            continue
        if benchmark.execute is None:
            problems.append(
                SrBenchError(
                    f"{name} can be prepared and browsed, but this version cannot run it (it needs "
                    f"{' and '.join(benchmark.needs) or 'an executor'}).",
                    code="not_executable",
                    field="dataset",
                    mend="Plan a dataset without this benchmark.",
                )
            )
            continue
        problems += _roles(draft, name, benchmark) + _options(draft, name, benchmark)
    if facts is not None:
        for name in draft.benchmark_options:
            if name not in facts.counts:
                problems.append(
                    SrBenchError(
                        f"The dataset holds no cases of {name!r}.",
                        code="unknown_field",
                        field=f"benchmark_options.{name}",
                        mend=f"Remove these options, or use one of: {', '.join(facts.counts)}.",
                    )
                )
    return problems


def planned_benchmark(name: str, benchmark: Benchmark, facts: DatasetFacts) -> PlannedBenchmark:
    """What the plan freezes of one benchmark."""
    return PlannedBenchmark(
        adapter_version=benchmark.adapter_version,
        grader_version=benchmark.grader_version,
        kind=benchmark.kind,
        weight=str(benchmark.weight),
        case_count=facts.counts[name],
        case_sha256=facts.lines_sha256[name],
    )


def provenance(manifest: DatasetManifest) -> dict[str, Any]:
    """The dataset's origin as frozen in the plan: what its id covers, less what the plan says itself."""
    own = {
        "version",
        "sha256",
        "case_count",
        "profile",
        "seed",
        "split",
        "counts",
        "case_sha256",
        "benchmarks",
    }
    return {name: value for name, value in manifest.identity().items() if name not in own}


def _consistency(ref: DatasetRef, manifest: DatasetManifest, cases: list[Case]) -> list[SrBenchError]:
    problems: list[SrBenchError] = []
    if manifest.sha256 != ref.sha256 or manifest.case_count != len(cases):
        problems.append(
            SrBenchError(
                "The manifest.json beside this file describes other cases.",
                code="changed_dataset",
                field="dataset.path",
                mend="Use path and sha256 as `sr-bench dataset prepare` printed them.",
            )
        )
    if not cases:
        problems.append(
            SrBenchError("The dataset has no cases.", field="dataset", mend="Prepare another one.")
        )
    if not Path(ref.path).is_absolute():
        problems.append(
            SrBenchError("The path is not absolute.", field="dataset.path", mend="Give the full path.")
        )
    return problems


def _no_preview(name: str) -> SrBenchError:
    return SrBenchError(
        f"{name} builds its messages while it runs, so its routing cannot be previewed.",
        code="not_executable",
        field="dataset",
        mend="Preview a dataset without this benchmark.",
    )


def _roles(draft: Draft, name: str, benchmark: Benchmark) -> list[SrBenchError]:
    problems: list[SrBenchError] = []
    given = {
        "judge": draft.judge is not None or draft.judge_given,
        "simulator": draft.simulator is not None or draft.simulator_given,
    }
    for role, present in given.items():
        if role in benchmark.needs and not present:
            problems.append(
                SrBenchError(
                    f"{name} needs a fixed single-model {role}.",
                    code="missing_field",
                    field=f"auxiliary_targets.{role}",
                    mend=f"Give it there, or once for all plans in the store's benchmark-options.json under "
                    f"auxiliary_targets.{role}.",
                )
            )
    return problems


def _options(draft: Draft, name: str, benchmark: Benchmark) -> list[SrBenchError]:
    options = draft.benchmark_options.get(name, {})
    field = f"benchmark_options.{name}"
    required = dict(benchmark.required_options)
    if "judge" in benchmark.needs and benchmark.grader_version is not None:
        required["grader_version"] = benchmark.grader_version
    problems: list[SrBenchError] = []
    for option, value in required.items():
        if options.get(option) != value:
            said = "is missing" if option not in options else "names another version"
            problems.append(
                SrBenchError(
                    f"{name} runs with {option} {value} only; the option {said}.",
                    field=f"{field}.{option}",
                    mend=f"Set {field}.{option}: {value}.",
                )
            )
    known = {*required, *benchmark.options, *(["grader_version"] if benchmark.grader_version else [])}
    if options.get("grader_version", benchmark.grader_version) != benchmark.grader_version and not required:
        problems.append(
            SrBenchError(
                f"{name} is graded by {benchmark.grader_version}.",
                field=f"{field}.grader_version",
                mend="Remove the option, or name that version.",
            )
        )
    for option in options:
        if option not in known:
            problems.append(
                SrBenchError(
                    f"{name} has no such option.",
                    code="unknown_field",
                    field=f"{field}.{option}",
                    mend=f"Remove it, or use one of: {', '.join(sorted(known))}." if known else "Remove it.",
                )
            )
    return problems
