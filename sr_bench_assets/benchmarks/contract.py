"""The vocabulary that every benchmark speaks: case, grade, case result, and what a benchmark plug-in provides."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict

Profile = Literal["smoke", "quick", "standard"]
PROFILES: tuple[Profile, ...] = ("smoke", "quick", "standard")
DEFAULT_SEED = 20260918
Kind = Literal["multiple_choice", "grid", "judge", "code", "agent"]
AnswerStatus = Literal["parsed", "ambiguous", "unparsed", "not_applicable"]


class Case(BaseModel):
    """One frozen task; one canonical JSON line of `cases.jsonl`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    """`<benchmark>/<native id>`."""
    benchmark: str
    category: str
    """The stratum of the selection rule; shown to people as the category."""
    messages: list[dict[str, Any]]
    """Chat messages of the first subject call, exactly as sent. Empty for agent tasks, which build their own."""
    input: dict[str, Any]
    """What a reader may see of the task (question, options, files…). Never a label."""
    reference: dict[str, Any]
    """Labels: answer, tests, target grids. Stay inside the store; no client or target ever gets them."""
    identity: dict[str, Any] | None = None
    """Canonical task identity (`source_partition`, `task_identity_sha256`, …) where it was asked for."""


@dataclass(frozen=True)
class Grade:
    """What a grader says of one final answer. `correct` is None where it could not be graded."""

    answer: Any
    answer_status: AnswerStatus
    correct: bool | None
    strict_format: bool | None = None
    score: float | None = None
    reason: str | None = None


@dataclass(frozen=True)
class CaseResult:
    """How one cell (case × target) ended.

    `status` is failed when the model gave no usable answer (`failure` names why: a call failure, `length`,
    `judge_error`, …); a wrong, ambiguous or unparsed answer is a completed cell with `correct=False`.
    """

    status: Literal["completed", "failed"]
    answer: Any = None
    answer_status: AnswerStatus = "not_applicable"
    strict_format: bool | None = None
    correct: bool | None = None
    score: float | None = None
    failure: str | None = None
    diagnostics: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class CallView:
    """What an executor gets back from one call: the derived record, never an exception for a failed call."""

    call_id: str
    call_status: Literal["completed", "failed"]
    failure: str | None
    text: str
    reasoning: str
    final: str
    finish_reason: str | None
    output_complete: bool | None
    tool_calls: Sequence[Mapping[str, Any]]
    usage: Mapping[str, Any]
    model: str | None


class CaseSession(Protocol):
    """The only way from an executor to a model: every call is reserved, journaled and priced."""

    @property
    def options(self) -> Mapping[str, Any]:
        """This benchmark's frozen options from the plan (`benchmark_options[<id>]`)."""
        ...

    async def call(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        role: Literal["subject", "judge", "simulator"] = "subject",
        extra: Mapping[str, Any] | None = None,
    ) -> CallView:
        """Send one chat completion (`extra`: further request members such as `tools`)."""
        ...


Executor = Callable[[Case, CaseSession], Awaitable[CaseResult]]


@dataclass(frozen=True)
class HubSource:
    """Files of one dataset repository of a Hugging Face hub at one commit."""

    repo_id: str
    revision: str
    files: tuple[str, ...]
    gated: bool = False

    @property
    def url(self) -> str:
        return f"https://huggingface.co/datasets/{self.repo_id}"


@dataclass(frozen=True)
class GitSource:
    """A git repository at one commit; only `paths` (files or folders, "" = all) are checked out."""

    url: str
    revision: str
    paths: tuple[str, ...]


Source = HubSource | GitSource


@dataclass(frozen=True)
class SourceFiles:
    """Verified source files on disk: logical name (as in `Source.files`/relative path) → local path."""

    root: Path
    files: Mapping[str, Path]


@dataclass(frozen=True, slots=True)
class CaseKey:
    """What selection and exclusion need of one source task, without building its case."""

    id: str
    """`<benchmark>/<native id>`, equal to `Case.id`."""
    stratum: str
    """Equal to `Case.category`."""
    native_id: str
    """The upstream's own id, the base of canonical task identity (GPQA: the full SHA-256 of the question)."""


@dataclass(frozen=True)
class CaseIndex:
    """All tasks of one source, cheaply: keys first, cases only for those that were selected."""

    keys: Sequence[CaseKey]
    """In source order."""
    build: Callable[[Sequence[int]], list[Case]]
    """Positions in `keys` → their cases, in the order of the positions."""


@dataclass(frozen=True)
class Benchmark:
    """One benchmark plug-in. Built-ins and third-party ones register an instance by the entry-point group
    `sr_bench.benchmarks` (entry-point name = `id`)."""

    id: str
    title: str
    capability: str
    kind: Kind
    counts: Mapping[Profile, int]
    weight: Fraction
    """Weight in the full sr-bench score; 0 for benchmarks outside the nine."""
    source: Source
    adapter_version: str
    """Changes whenever prompts, execution or grading change."""
    normalizer_version: str
    """Changes whenever the same source bytes give other cases."""
    licence: str
    access_note: str
    read_cases: Callable[[SourceFiles, int], Iterable[Case]]
    """Source files and seed → all cases of the source, in source order (selection comes after)."""
    execute: Executor | None = None
    """None: this version prepares and shows the tasks but cannot run them; `plan` says so."""
    grade: Callable[[Case, str], Grade] | None = None
    """Pure grading of a final text; None where grading needs a judge or a sandbox."""
    selection_order: Literal["stratified", "round_robin"] = "stratified"
    grader_version: str | None = None
    index: Callable[[SourceFiles, int], CaseIndex] | None = None
    """Optional fast path of `read_cases` with the same cases; callers go through `index_cases`."""
    visible_files: Callable[[Case], Sequence[str]] | None = None
    """Source files (names as in `SourceFiles`) that belong to the task as a model or its user meets it and are too
    large for `Case.input`; never solutions, tests or criteria. Shown while browsing, if the source is at hand."""
    needs: tuple[Literal["judge", "simulator", "sandbox", "harness"], ...] = ()
    options: Mapping[str, str] = field(default_factory=dict[str, str])
    """Options that a manifest may set under `benchmark_options[<id>]`: name → one line for people. `plan` refuses
    all others but `grader_version`."""
    required_options: Mapping[str, str] = field(default_factory=dict[str, str])
    """Options that must be written out with exactly this value (tau3: release 1.0.1)."""


def index_cases(benchmark: Benchmark, files: SourceFiles, seed: int) -> CaseIndex:
    """Keys of all tasks of a source, and a way to build the selected ones.

    This is how a preparation reads a source: `select` over `keys`, then `build` of the positions. Benchmarks
    without an `index` of their own (small ones, third-party ones) are read in full by `read_cases`.
    """
    if benchmark.index is not None:
        return benchmark.index(files, seed)
    cases = list(benchmark.read_cases(files, seed))
    prefix = f"{benchmark.id}/"
    keys = [CaseKey(case.id, case.category, case.id.removeprefix(prefix)) for case in cases]
    return CaseIndex(keys, lambda positions: [cases[position] for position in positions])
