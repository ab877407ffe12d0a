"""What a preparation is asked for, and which of its options go together."""

from __future__ import annotations

import re

from pydantic import Field, field_validator, model_validator

from resources.errors import SrBenchError
from sr_bench_assets.benchmarks.contract import DEFAULT_SEED, Profile
from sr_bench_assets.datasets.artifact import EvaluationRole, Frozen

_PARTITION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
MAX_LABEL_CHARS = 200


class PreparationRequest(Frozen):
    """What `dataset prepare` is asked for; the same request gives the same dataset."""

    benchmarks: tuple[str, ...] = Field(min_length=1)
    profile: Profile
    seed: int = DEFAULT_SEED
    seed_given: bool = False
    """True where a person chose the seed, so that sets of other seeds in the store are no conflict."""
    limit: int | None = Field(default=None, ge=1)
    source_path: str | None = None
    revision: str | None = None
    source_partition: str | None = None
    exclusion_snapshot: str | None = None
    evaluation_role: EvaluationRole | None = None
    sample_data: str | None = None
    reuse: tuple[str, ...] = ()
    """Ids of datasets to take as they are, for conflicts that only a person can resolve."""
    fresh: bool = False
    """Take the pinned source for everything, whatever other sets the store holds."""

    @field_validator("benchmarks")
    @classmethod
    def _each_once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(value))

    @field_validator("source_partition")
    @classmethod
    def _partition_name(cls, value: str | None) -> str | None:
        if value is not None and not _PARTITION.fullmatch(value):
            raise SrBenchError(
                f"{value[:80]!r} is no name of a partition.",
                field="--source-partition",
                mend="Use the upstream's own name of its task collection, such as test or dev: up to 64 letters, "
                "digits and . _ -",
            )
        return value

    @field_validator("sample_data")
    @classmethod
    def _label(cls, value: str | None) -> str | None:
        if value is not None and not 1 <= len(value.strip()) <= len(value) <= MAX_LABEL_CHARS:
            raise SrBenchError(
                f"The label of sample data has {len(value)} characters.",
                field="--sample-data",
                mend=f"Say in 1 to {MAX_LABEL_CHARS} characters whose data they are.",
            )
        return value

    @model_validator(mode="after")
    def _consistent(self) -> PreparationRequest:
        _check_import(self)
        _check_history(self)
        return self


def _check_import(request: PreparationRequest) -> None:
    if (request.source_path is None) != (request.revision is None):
        raise SrBenchError(
            "A local import needs both --source-path and --revision.",
            field="--revision" if request.revision is None else "--source-path",
            mend="Give the path and a label of its version, for example --revision imported-v1.",
        )
    if request.source_path is not None and len(request.benchmarks) > 1:
        raise SrBenchError(
            "One local import is the source of one benchmark.",
            field="--benchmark",
            mend="Import each benchmark by itself, then `sr-bench dataset combine` them.",
        )
    if request.sample_data is not None and request.source_path is None:
        raise SrBenchError(
            "Only a local import can be labelled as sample data.",
            field="--sample-data",
            mend="Add --source-path and --revision.",
        )


def _check_history(request: PreparationRequest) -> None:
    if request.exclusion_snapshot is not None and request.source_partition is None:
        raise SrBenchError(
            "An exclusion needs canonical task identity.",
            field="--source-partition",
            mend="Add --source-partition with the partition that the history was prepared with.",
        )
    if request.exclusion_snapshot is not None and request.profile != "standard":
        raise SrBenchError(
            f"History is excluded from standard only; {request.profile} stays everybody's {request.profile}.",
            field="--exclusion-snapshot",
            mend="Use --profile standard.",
        )
    if request.evaluation_role == "holdout" and request.exclusion_snapshot is None:
        raise SrBenchError(
            "The role holdout claims disjointness from named history, and none is named.",
            field="--evaluation-role",
            mend="Add --exclusion-snapshot, or prepare standard without a role.",
        )
