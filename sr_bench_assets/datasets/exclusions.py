"""Named history: immutable snapshots of the tasks that named datasets and runs hold, and their subtraction."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import orjson
from pydantic import ValidationError

from resources.canonical import content_hash
from resources.errors import IntegrityError, NotFound, SrBenchError
from sr_bench_assets.datasets.artifact import DatasetManifest, Frozen, read_lines
from sr_bench_assets.datasets.identity import IDENTITY_POLICY, SourceIdentity, source_identity

SNAPSHOT_VERSION = "sr-bench-exclusions-1"
MAX_REFERENCES = 256
MAX_TASKS = 200_000
MAX_REFERENCE_BYTES = 2 << 30
MAX_SNAPSHOT_BYTES = 64 << 20


@dataclass(frozen=True)
class Reference:
    """One named dataset, or one named run by its frozen plan."""

    kind: Literal["dataset", "run"]
    id: str
    digest: str
    """Dataset id, or the run's plan_sha256."""
    dataset: DatasetManifest
    """What the reference plans: all of its cases count, whether or not they were ever run."""


class NamedReference(Frozen):
    """A reference as the snapshot holds it."""

    kind: Literal["dataset", "run"]
    id: str
    digest: str
    dataset_id: str
    cases_sha256: str


class Family(Frozen):
    """The tasks of one benchmark that the references hold."""

    source: SourceIdentity
    count: int
    tasks: tuple[str, ...]
    """Task identity hashes, sorted. No question or answer text."""


class Snapshot(Frozen):
    """The document that `dataset exclusions` writes."""

    version: Literal["sr-bench-exclusions-1"] = SNAPSHOT_VERSION
    identity_policy: str = IDENTITY_POLICY
    references: tuple[NamedReference, ...]
    families: dict[str, Family]
    snapshot_sha256: str = ""

    def content(self) -> dict[str, Any]:
        """The members that `snapshot_sha256` covers."""
        return self.model_dump(mode="json", exclude={"snapshot_sha256"})

    def as_dict(self) -> dict[str, Any]:
        return self.model_dump(mode="json")


def compile_snapshot(references: Sequence[Reference]) -> Snapshot:
    """Reserve every task of the named references.

    Raises SrBenchError where a reference has no task identity (prepared without `--source-partition`), where the
    references take one benchmark from different sources, or where they are too many or too large to read.
    """
    _check_bounds(references)
    sources: dict[str, SourceIdentity] = {}
    tasks: dict[str, set[str]] = {}
    for reference in references:
        _admit_sources(reference, sources)
        for line in read_lines(reference.dataset.path, reference.dataset.sha256):
            case = orjson.loads(line)
            identity = case.get("identity") or {}
            if identity.get("policy") != IDENTITY_POLICY:
                raise _without_identity(reference, case["benchmark"])
            tasks.setdefault(case["benchmark"], set()).add(identity["task_identity_sha256"])
    total = sum(map(len, tasks.values()))
    if total > MAX_TASKS:
        raise _too_large(f"they hold {total} tasks, more than {MAX_TASKS}")
    families = {
        name: Family(source=sources[name], count=len(found), tasks=tuple(sorted(found)))
        for name, found in sorted(tasks.items())
    }
    named = {
        (r.kind, r.id): NamedReference(
            kind=r.kind, id=r.id, digest=r.digest, dataset_id=r.dataset.id, cases_sha256=r.dataset.sha256
        )
        for r in references
    }
    draft = Snapshot(references=tuple(named[key] for key in sorted(named)), families=families)
    return draft.model_copy(update={"snapshot_sha256": content_hash(draft.content())})


def read_snapshot(path: str | Path) -> Snapshot:
    """A snapshot file, verified; raises for a missing, oversized, foreign or changed one."""
    path = Path(path)
    try:
        if path.stat().st_size > MAX_SNAPSHOT_BYTES:
            raise _too_large(f"{path.name} is larger than {MAX_SNAPSHOT_BYTES} bytes")
        document = json.loads(path.read_bytes())
        snapshot = Snapshot.model_validate(document)
    except FileNotFoundError as error:
        raise NotFound(
            f"There is no exclusion snapshot {path}.",
            field="--exclusion-snapshot",
            mend="Write one with `sr-bench dataset exclusions --dataset ID --output FILE`.",
        ) from error
    except (ValidationError, ValueError) as error:
        raise SrBenchError(
            f"{path} is no exclusion snapshot of this version.",
            field="--exclusion-snapshot",
            mend="Write one with `sr-bench dataset exclusions`.",
        ) from error
    if snapshot.identity_policy != IDENTITY_POLICY:
        raise SrBenchError(
            f"{path} follows the identity policy {snapshot.identity_policy}; this version knows {IDENTITY_POLICY}.",
            field="--exclusion-snapshot",
            mend="Compile the snapshot again with this version.",
        )
    if content_hash(snapshot.content()) != snapshot.snapshot_sha256:
        raise IntegrityError(
            f"{path} was changed after it was written.",
            field="--exclusion-snapshot",
            mend="Snapshots are never edited: compile it again.",
        )
    return snapshot


def excluded_cases(snapshot: Snapshot, source: SourceIdentity, identities: dict[str, str]) -> set[str]:
    """Ids of the cases that `snapshot` names among a source's tasks (`identities`: case id → task identity).

    Raises SrBenchError where the snapshot knows this benchmark from another source, revision, normaliser or
    partition: no mapping between sources is assumed.
    """
    family = snapshot.families.get(source.benchmark)
    if family is None:
        return set()
    differing = family.source.differences(source)
    if differing:
        raise SrBenchError(
            f"The snapshot knows {source.benchmark} from another source: "
            + "; ".join(
                f"{name} is {getattr(family.source, name)} there and {getattr(source, name)} here"
                for name in differing
            )
            + ".",
            code="source_conflict",
            field="--exclusion-snapshot",
            mend="Prepare from the same source, revision and --source-partition as the named history.",
        )
    reserved = set(family.tasks)
    found = {case_id for case_id, identity in identities.items() if identity in reserved}
    if len(found) != len(reserved):
        raise IntegrityError(
            f"The snapshot names {len(reserved)} tasks of {source.benchmark}, but only {len(found)} of them are "
            "in the source that it states.",
            field="--exclusion-snapshot",
            mend="Compile the snapshot again from the named datasets.",
        )
    return found


def _check_bounds(references: Sequence[Reference]) -> None:
    if not references:
        raise SrBenchError(
            "No history was named.", field="--dataset", mend="Name at least one --dataset ID or --run ID."
        )
    if len(references) > MAX_REFERENCES:
        raise _too_large(f"{len(references)} are more than {MAX_REFERENCES}")
    size = sum(
        Path(path).stat().st_size for path in {r.dataset.path for r in references} if Path(path).exists()
    )
    if size > MAX_REFERENCE_BYTES:
        raise _too_large(f"their cases are {size} bytes, more than {MAX_REFERENCE_BYTES}")


def _admit_sources(reference: Reference, sources: dict[str, SourceIdentity]) -> None:
    for benchmark, record in reference.dataset.sources.items():
        identity = source_identity(benchmark, record)
        if identity is None:
            raise _without_identity(reference, benchmark)
        differing = sources.setdefault(benchmark, identity).differences(identity)
        if differing:
            raise SrBenchError(
                f"The named history takes {benchmark} from different sources (they differ in "
                f"{', '.join(differing)}); {reference.kind} {reference.id} is the first to differ.",
                code="source_conflict",
                field=f"--{reference.kind}",
                mend="Make one snapshot per source; tasks of different sources are never matched.",
            )


def _without_identity(reference: Reference, benchmark: str) -> SrBenchError:
    return SrBenchError(
        f"The {reference.kind} {reference.id} holds {benchmark} tasks without canonical identity.",
        code="no_task_identity",
        field=f"--{reference.kind}",
        mend="Only datasets prepared with --source-partition can support an exclusion claim: "
        "prepare it again with that option, or leave it out and claim nothing about it.",
    )


def _too_large(what: str) -> SrBenchError:
    return SrBenchError(
        f"The named history is too large: {what}.",
        code="too_large",
        field="--exclusion-snapshot",
        mend="Name fewer datasets and runs.",
    )
