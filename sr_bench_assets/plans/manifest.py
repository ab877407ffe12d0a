"""The manifest that a person writes and the frozen plan that a run executes."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from resources.targets import Amount, Strict, Target

PROTOCOL_VERSION = "sr-bench-1.0"
MAX_EXACT_INTEGER = 2**53 - 1
"""Beyond it an integer has no canonical JSON (RFC 8785), and so no place in a hash."""


def _connect_timeout(written: dict[str, Any]) -> float:
    return min(10.0, written.get("idle_timeout_s", 10.0))


class Limits(Strict):
    """Bounds of calls, cases and the run. Times in seconds."""

    concurrency: int = Field(default=1, ge=1, le=1024)
    """Cells (case × target) in flight over the whole run; a target's `max_concurrency` bounds it further."""
    total_timeout_s: float = Field(default=180, gt=0)
    idle_timeout_s: float = Field(default=30, gt=0)
    connect_timeout_s: float = Field(default_factory=_connect_timeout, gt=0)
    """Where nothing is written: 10, or `idle_timeout_s` where that is shorter."""
    max_output_tokens: int = Field(default=4096, ge=1)
    max_output_chars: int = Field(default=131072, ge=1)
    repetition_window: int = Field(default=128, ge=1)
    repetition_limit: int = Field(default=5, ge=2)
    max_calls_per_case: int = Field(default=32, ge=1)
    case_timeout_s: float = Field(default=600, gt=0)
    max_run_seconds: float = Field(default=1800, gt=0)
    max_cost_usd: Amount = Field(default=Decimal(5), ge=0, le=1_000_000, decimal_places=12)
    max_log_bytes: int = Field(default=8388608, ge=1024)
    """Raw response bytes kept per call; a reply beyond it is stopped."""
    max_rejections_per_call: int = Field(default=8, ge=0)
    max_consecutive_failures: int = Field(default=10, ge=1)


class Sampling(Strict):
    """Generation settings sent with every subject call unless a target's `request_params` override them."""

    temperature: float | None = Field(default=0, ge=0, le=2)
    top_p: float | None = Field(default=1, gt=0, le=1)
    max_tokens: int = Field(default=4096, ge=1)
    seed: int | None = Field(default=None, ge=-MAX_EXACT_INTEGER, le=MAX_EXACT_INTEGER)
    stop: list[str] | None = None
    presence_penalty: float | None = Field(default=None, ge=-2, le=2)
    frequency_penalty: float | None = Field(default=None, ge=-2, le=2)
    stream: bool = True


class DatasetRef(Strict):
    """A prepared `cases.jsonl` and the SHA-256 of its bytes."""

    path: str
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class NonInferiority(Strict):
    """A margin fixed before the run: the candidate may lose less than `margin` (fraction of quality)."""

    margin: Amount = Field(gt=0, lt=1, decimal_places=12)


class PreviewContext(Strict):
    """Context sent with route previews."""

    session_id: str | None = None
    conversation_id: str | None = None
    sampling_seed: int | None = Field(default=None, ge=-MAX_EXACT_INTEGER, le=MAX_EXACT_INTEGER)


class AuxiliaryTargets(Strict):
    """The fixed models that grade or simulate."""

    judge: Target | None = None
    simulator: Target | None = None


class Manifest(Strict):
    """What a person writes (YAML or JSON); everything but dataset and targets has a default."""

    version: Literal["sr-bench-1.0"] = PROTOCOL_VERSION
    name: str = Field(min_length=1, max_length=200)
    mode: Literal["live", "preview"] = "live"
    profile: Literal["smoke", "quick", "standard"]
    seed: int = Field(default=20260918, ge=-MAX_EXACT_INTEGER, le=MAX_EXACT_INTEGER)
    dataset: DatasetRef
    targets: list[Target] = Field(min_length=1)
    auxiliary_targets: AuxiliaryTargets = Field(default_factory=AuxiliaryTargets)
    cost_policy: Literal["require_priced", "capability_only"] = "require_priced"
    limits: Limits = Field(default_factory=Limits)
    sampling: Sampling = Field(default_factory=Sampling)
    benchmark_options: dict[str, dict[str, Any]] = Field(default_factory=dict)
    non_inferiority: NonInferiority | None = None
    preview_context: PreviewContext | None = None


class PlannedBenchmark(BaseModel):
    """What the plan freezes of one benchmark."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    adapter_version: str
    grader_version: str | None
    kind: str
    weight: str
    """Exact fraction as text, e.g. `3/20`."""
    case_count: int
    case_sha256: str
    """SHA-256 of this benchmark's lines of `cases.jsonl`, in order, each with its newline."""


class FrozenPlan(Manifest):
    """A verified manifest with all defaults spelled out. `plan_sha256` is the content hash (RFC 8785) of the
    document without `plan_sha256` itself."""

    benchmarks: dict[str, PlannedBenchmark]
    """In the order of the dataset."""
    dataset_id: str
    dataset_split: Literal["dev", "holdout"]
    dataset_provenance: dict[str, Any]
    """The dataset manifest's sources, selection, custom_subset, exclusions, sample label…"""
    case_sha256: str
    """SHA-256 of the case ids joined by newlines."""
    case_count: int
    plan_sha256: str

    @property
    def all_targets(self) -> list[Target]:
        """The targets, then those of roles (judge, simulator) where there are any."""
        roles = (self.auxiliary_targets.judge, self.auxiliary_targets.simulator)
        return [*self.targets, *(target for target in roles if target is not None)]
