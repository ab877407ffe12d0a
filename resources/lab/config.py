"""`lab.yaml`: the simulated and recorded models and MoM entrypoints that a lab serves, and how they fail.

Every field is described where it stands; `docs/lab.md` explains the file as a whole.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, Field, ValidationError, model_validator

from resources.errors import NotFound, Problems, SrBenchError
from resources.lab.faults import FaultRule
from resources.lab.shapes import StreamShape, UsageShape
from resources.targets import Price, RateLimit, Strict

LAB_VERSION = "sr-bench-lab-1"
EXAMPLE = Path(__file__).with_name("example.yaml")

Share = Annotated[float, Field(ge=0, le=1)]
AnswerStyle = Literal["explained", "letter", "labelled", "boxed", "markdown", "json", "latex"]


def _named_lab(name: str) -> str:
    if not name.startswith("lab-"):
        raise ValueError(
            f"the name {name!r} must begin with 'lab-', so that nobody takes it for a real model"
        )
    return name


LabName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"), AfterValidator(_named_lab)]


class Latency(Strict):
    """When the tokens of a reply leave."""

    ttft_ms: float = Field(default=50, ge=0)
    """Milliseconds to the first token."""
    jitter: Share = 0.2
    """The time to the first token varies by ± this share, from case to case."""
    tokens_per_second: float = Field(default=200, gt=0)
    tokens_per_event: int = Field(default=4, ge=1)
    """Tokens in one stream event."""


class PrefixCache(Strict):
    """Prompt cache of one model: whole blocks of a prompt's beginning are read if an earlier one had them."""

    block_tokens: int = Field(default=32, ge=1)
    min_tokens: int = Field(default=64, ge=1)
    """Shorter prompts are neither read from nor written to the cache."""
    report_writes: bool = False
    """True: blocks that are new are reported as cache writes (and priced so) instead of fresh input."""


class Behaviour(Strict):
    """What simulated and recorded models have in common."""

    latency: Latency = Field(default_factory=Latency)
    output_tokens: int = Field(default=60, ge=1)
    """About this many visible tokens a reply (half to one and a half times, by case)."""
    reasoning_tokens: int = Field(default=0, ge=0)
    """Tokens of separate reasoning before the answer."""
    answer_style: AnswerStyle = "explained"
    usage_shape: UsageShape = "openai"
    stream_shapes: list[StreamShape] = Field(default_factory=list[StreamShape])
    """Habits of odd gateways, see `docs/lab.md`."""
    prefix_cache: PrefixCache | None = None
    rate_limit: RateLimit = Field(default_factory=RateLimit)
    """Enforced by the lab with 429 and Retry-After, and printed into the target."""
    faults: list[FaultRule] = Field(default_factory=list[FaultRule])


class Model(Behaviour):
    """One simulated model."""

    competence: dict[str, Share] = Field(default_factory=lambda: {"default": 0.5})
    """Probability of a correct answer by category (`math`), benchmark (`arc-agi-2`) or `default`."""
    shared_difficulty: Share = 0.6
    """Share of cases whose difficulty is the same for all models; the rest is each model's own luck."""
    no_answer: Share = 0
    """Share of cases, among those not answered correctly, that end without an answer."""
    judge_agreement: Share | None = None
    """Set for a judge: how often its verdict is the right one. Judges are printed apart from targets."""
    prices: Price | None = None


class Recorded(Behaviour):
    """Models that give the letters recorded in a CSV of real predictions."""

    file: str
    """CSV with the columns question_id, category, answer, then one per model; NONE = no answer extracted.
    A relative path starts at the folder of `lab.yaml`."""
    benchmark: str = "mmlu-pro"
    prices: dict[str, Price] = Field(default_factory=dict[str, Price])
    """By column name. Invented unless `pricing_basis` says otherwise."""
    unrecorded: Literal["error", "no_answer"] = "error"
    """A question that is not in the CSV: HTTP 404, or a reply without an answer."""


class Decision(Strict):
    """One routing rule: cases of `categories` (category names or benchmark ids) go to `model`, or through all
    of `calls` (the last one answers)."""

    name: str = Field(min_length=1, max_length=100, pattern=r"^[ -~]+$")
    categories: list[str] = Field(default_factory=list[str])
    model: str | None = None
    calls: list[str] = Field(default_factory=list[str])

    @model_validator(mode="after")
    def _one_way(self) -> Decision:
        if (self.model is None) == (not self.calls):
            raise ValueError("give either `model` or `calls`")
        return self

    @property
    def models(self) -> list[str]:
        """The models called, in order; the last one answers."""
        return [self.model] if self.model is not None else self.calls


class Router(Strict):
    """One MoM entrypoint."""

    decisions: list[Decision] = Field(default_factory=list[Decision])
    default: Decision
    """For categories that no decision names."""
    classifier_accuracy: Share = 1
    """Share of cases routed by their true category; the others take some other decision, by case."""
    overhead_ms: float = Field(default=5, ge=0)
    session_mode: Literal["stateless", "session_aware"] = "stateless"
    """session_aware: the first model chosen in a session (`x-session-id`) stays."""
    receipt: Literal["compound", "always", "incomplete", "never"] = "compound"
    """When `x-vsr-model-usage` is sent: for executions of several calls, always, with the last call missing
    and `complete: false`, or never."""
    hash_mismatch: Literal["answer", "reject"] = "answer"
    """A request that expects another config hash is answered (with the true hash), or refused with 409."""
    faults: list[FaultRule] = Field(default_factory=list[FaultRule])


class LabConfig(Strict):
    """The whole file."""

    version: Literal["sr-bench-lab-1"] = LAB_VERSION
    seed: int = 7
    time_scale: float = Field(default=1, ge=0)
    """All waiting times are multiplied by it; 0 answers at once."""
    api_key_env: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    """Name of the environment variable whose value every request must bring as bearer token."""
    pricing_basis: str = "lab: invented prices"
    activation: Literal["active", "pending"] = "active"
    """pending: the router's running configuration is not yet the one in its file."""
    models: dict[LabName, Model] = Field(default_factory=dict[LabName, Model])
    recorded: Recorded | None = None
    routers: dict[LabName, Router] = Field(default_factory=dict[LabName, Router])
    faults: list[FaultRule] = Field(default_factory=list[FaultRule])
    """Faults of every model and router."""

    @model_validator(mode="after")
    def _names_apart(self) -> LabConfig:
        if both := sorted(set(self.models) & set(self.routers)):
            raise ValueError(f"a model and a router are both called {', '.join(both)}")
        return self


def parse_config(document: Any, *, where: str = "lab.yaml") -> LabConfig:
    """`document` (mapping of JSON types) as a checked configuration; `Problems` lists every mistake."""
    try:
        return LabConfig.model_validate(document)
    except ValidationError as error:
        problems = [
            SrBenchError(
                item["msg"].removeprefix("Value error, "),
                field=".".join(str(part) for part in item["loc"]) or where,
                mend="See docs/lab.md, or print a commented file with `sr-bench lab example`.",
            )
            for item in error.errors()
        ]
        raise Problems(f"{where} has {len(problems)} problem(s)", problems) from None


def load_config(path: Path) -> LabConfig:
    """Read and check `lab.yaml`; a relative `recorded.file` is resolved beside it."""
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise NotFound(f"there is no lab configuration at {path}", field="--config") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SrBenchError(f"{path} is not YAML: {error}", field="--config") from None
    config = parse_config(document, where=path.name)
    if config.recorded is None:
        return config
    file = str((path.parent / config.recorded.file).resolve())
    return config.model_copy(update={"recorded": config.recorded.model_copy(update={"file": file})})
