"""Canonical task identity: the same task of the same source has the same hash in every dataset.

First policy, deliberately narrow: exact source bytes, revision, normaliser and upstream partition, and the
upstream's own task id. Nothing else (aliases, equal messages, other revisions) ever counts as the same task.
"""

from __future__ import annotations

from collections.abc import Sequence

from resources.canonical import content_hash
from resources.errors import SrBenchError
from sr_bench_assets.benchmarks.contract import Case, CaseKey
from sr_bench_assets.datasets.artifact import Frozen, SourceRecord

IDENTITY_POLICY = "sr-bench-task-identity-1"


class SourceIdentity(Frozen):
    """What must be equal for task identities to be comparable."""

    benchmark: str
    revision: str
    files_sha256: str
    normalizer_version: str
    source_partition: str

    def differences(self, other: SourceIdentity) -> list[str]:
        """Names of the members that differ."""
        mine, theirs = self.model_dump(), other.model_dump()
        return [name for name in mine if mine[name] != theirs[name]]


def source_identity(benchmark: str, source: SourceRecord) -> SourceIdentity | None:
    """The identity of a source whose partition was recorded; None for older artifacts, which have none."""
    if source.source_partition is None:
        return None
    return SourceIdentity(
        benchmark=benchmark,
        revision=source.revision,
        files_sha256=source.files_sha256,
        normalizer_version=source.normalizer_version,
        source_partition=source.source_partition,
    )


def task_identities(keys: Sequence[CaseKey], source: SourceIdentity) -> dict[str, str]:
    """Case id → task identity (hex SHA-256). Raises SrBenchError for tasks without a native id."""
    base = content_hash(source.model_dump())
    identities: dict[str, str] = {}
    for key in keys:
        if not key.native_id:
            raise SrBenchError(
                f"The task {key.id} has no native id, so it has no identity for a history comparison.",
                code="no_task_identity",
                field="--source-partition",
                mend="Prepare without --source-partition, or from the upstream's native files.",
            )
        identities[key.id] = content_hash([IDENTITY_POLICY, base, key.native_id])
    return identities


def with_identity(case: Case, source: SourceIdentity, task_identity: str) -> Case:
    """The case with its canonical identity recorded."""
    return case.model_copy(
        update={
            "identity": {
                "policy": IDENTITY_POLICY,
                "source_partition": source.source_partition,
                "task_identity_sha256": task_identity,
            }
        }
    )
