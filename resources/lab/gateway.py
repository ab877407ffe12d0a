"""The lab gateway without its HTTP: who answers a chat request, with what, at what pace and cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from resources.errors import Problems, SrBenchError
from resources.lab.answer_key import AnswerKey, KnownCase, question_text
from resources.lab.config import Behaviour, LabConfig, Model
from resources.lab.faults import FaultRule, FaultSwitch, draw
from resources.lab.judge import judge
from resources.lab.limits import Limiter
from resources.lab.models import Reply, compose, simulate, truncate
from resources.lab.prefix_cache import PromptCache, count_tokens
from resources.lab.recorded import PREFIX, Recording
from resources.lab.router import MAX_CALLS, SESSION, RouterState, called_models, config_hash
from resources.lab.shapes import Tokens, usage_object
from resources.lab.stats import RequestRecord, Stats


@dataclass(frozen=True)
class Execution:
    """One call of one model."""

    model: str
    behaviour: Behaviour
    reply: Reply
    finish_reason: str
    tokens: Tokens
    usage: dict[str, Any] | None
    ttft_s: float

    @property
    def duration_s(self) -> float:
        """Time from request to last token, unscaled."""
        return self.ttft_s + self.tokens.output / self.behaviour.latency.tokens_per_second


@dataclass(frozen=True)
class Answer:
    """What goes back to the client: the last execution, after a delay, with headers."""

    execution: Execution
    usage: dict[str, Any] | None
    headers: dict[str, str]
    first_token_s: float


class NoAnswer(Exception):
    """The request gets an error answer with this HTTP status."""

    def __init__(self, status: int, message: str, code: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.headers = headers or {}


class Lab:
    """All state of a running lab."""

    def __init__(
        self, config: LabConfig, key: AnswerKey | None = None, recording: Recording | None = None
    ) -> None:
        self.config = config
        self.key = AnswerKey() if key is None else key  # an empty one is false, and may fill later
        self.recording = recording
        if config.recorded is not None and recording is None:
            self.recording = Recording.read(Path(config.recorded.file))
        self.behaviours = served_models(config, self.recording)
        _check_references(config, self.behaviours)
        self.config_hash = config_hash(config)
        self.reset()

    def reset(self) -> None:
        """Forget all requests, caches, sessions and fault counts, as after a fresh start."""
        seed, shared = self.config.seed, self.config.faults
        self.stats = Stats()
        self.caches = {name: PromptCache(model.prefix_cache) for name, model in self.behaviours.items()}
        self.limiters = {name: Limiter(model.rate_limit) for name, model in self.behaviours.items()}
        self.routers = {name: RouterState(name, router, seed) for name, router in self.config.routers.items()}
        rules = {
            name: served.faults for name, served in [*self.behaviours.items(), *self.config.routers.items()]
        }
        self.switches = {name: FaultSwitch(seed, [*own, *shared]) for name, own in rules.items()}
        self._twins: Counter[tuple[str, str]] = Counter()

    def names(self) -> list[str]:
        """All model names that the lab answers to."""
        return [*self.behaviours, *self.routers]

    def case_of(self, body: Mapping[str, Any]) -> KnownCase | None:
        """The prepared case that the request asks. Cases with the very same text (some benchmarks have them)
        take turns, by how often the model was asked."""
        text = question_text(body.get("messages"))
        found = self.key.find(text) if text else []
        if len(found) < 2:
            return found[0] if found else None
        return found[self._twins[str(body.get("model")), found[0].text_sha256] % len(found)]

    def asked(self, model: str, case: KnownCase | None) -> None:
        """Count an accepted request, so that the next one with the same text is the next of its cases."""
        if case is not None:
            self._twins[model, case.text_sha256] += 1

    def overload(self, record: RequestRecord) -> int | None:
        """Seconds for Retry-After when the model's own rate limit refuses this request, else None."""
        limiter = self.limiters.get(record.model)
        return None if limiter is None else limiter.refuse(self.stats.inflight_of(record.model) - 1)

    def answer(
        self,
        body: Mapping[str, Any],
        case: KnownCase | None,
        headers: Mapping[str, str],
        fault: FaultRule | None,
    ) -> Answer:
        """The answer to a request that nothing refused. Raises `NoAnswer` for error answers."""
        name = str(body["model"])
        if name in self.behaviours:
            execution = self._execute(name, body, case)
            extra = {"x-sr-bench-lab-case": execution.reply.knows}
            return Answer(execution, execution.usage, extra, execution.ttft_s)
        state = self.routers[name]
        route = state.route(case, headers.get(SESSION))
        allowed = headers.get(MAX_CALLS)
        if allowed is not None and allowed.isdigit() and len(route.models) > int(allowed):
            message = f"the route needs {len(route.models)} calls, {allowed} are allowed"
            raise NoAnswer(422, message, "max_inference_calls", {"x-sr-bench-config-hash": self.config_hash})
        executions = [self._execute(model, body, case) for model in route.models]
        last = executions[-1]
        acknowledged = self.config_hash
        if fault is not None and fault.kind == "wrong_config_hash":
            acknowledged = self.config_hash[::-1]
        extra = state.headers(route, [execution.usage for execution in executions], acknowledged)
        if fault is not None and fault.kind == "no_config_hash":
            del extra["x-sr-bench-config-hash"]
        extra["x-sr-bench-lab-case"] = last.reply.knows
        waited = state.router.overhead_ms / 1000 + sum(execution.duration_s for execution in executions[:-1])
        return Answer(last, _summed_usage(executions), extra, waited + last.ttft_s)

    def _execute(self, name: str, body: Mapping[str, Any], case: KnownCase | None) -> Execution:
        behaviour = self.behaviours[name]
        whole, finish_reason = truncate(self._reply(name, behaviour, body, case), max_tokens(body))
        fresh, cached, written = self.caches[name].account(prompt_text(body))
        reasoning = count_tokens(whole.reasoning)
        output = max(1, reasoning + count_tokens(whole.text))
        tokens = Tokens(fresh, cached, written, output, reasoning)
        usage = usage_object(behaviour.usage_shape, tokens, caches=behaviour.prefix_cache is not None)
        swing = 2 * draw("ttft", self.config.seed, name, case.id if case else prompt_text(body)) - 1
        ttft = behaviour.latency.ttft_ms / 1000 * (1 + behaviour.latency.jitter * swing)
        return Execution(name, behaviour, whole, finish_reason, tokens, usage, ttft)

    def _reply(
        self, name: str, behaviour: Behaviour, body: Mapping[str, Any], case: KnownCase | None
    ) -> Reply:
        seed = self.config.seed
        if isinstance(behaviour, Model):
            if behaviour.judge_agreement is not None:
                return judge(seed, name, behaviour.judge_agreement, question_text(body.get("messages")))
            return simulate(seed, name, behaviour, case)
        recorded, recording = self.config.recorded, self.recording
        assert recorded is not None
        assert recording is not None
        if case is None:
            return compose(seed, name, behaviour, None, None, "unknown")
        letters = recording.predictions[name.removeprefix(PREFIX)]
        if case.benchmark == recorded.benchmark and case.native_id in letters:
            return compose(seed, name, behaviour, case, letters[case.native_id], "known")
        if recorded.unrecorded == "error":
            raise NoAnswer(404, f"the recording holds no answer to {case.id}", "not_recorded")
        return compose(seed, name, behaviour, case, None, "unrecorded")


def served_models(config: LabConfig, recording: Recording | None) -> dict[str, Behaviour]:
    """Model name → behaviour: the simulated ones, then `lab-recorded-<column>` for each column."""
    models: dict[str, Behaviour] = dict(config.models)
    if config.recorded is not None and recording is not None:
        shared = config.recorded
        models |= {PREFIX + column: shared for column in recording.models}
    return models


def prompt_text(body: Mapping[str, Any]) -> str:
    """All message texts of a request, in order: what the prompt cache and the token count see."""
    messages = body.get("messages")
    if not isinstance(messages, list):
        return ""
    return "\n".join(
        f"{message.get('role')}:{question_text([{**message, 'role': 'user'}])}"
        for message in messages
        if isinstance(message, dict)
    )


def max_tokens(body: Mapping[str, Any]) -> int | None:
    """The request's output cap."""
    for field in ("max_completion_tokens", "max_tokens"):
        value = body.get(field)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None


def _summed_usage(executions: list[Execution]) -> dict[str, Any] | None:
    last = executions[-1]
    if len(executions) == 1:
        return last.usage
    total = executions[0].tokens
    for execution in executions[1:]:
        total = total.plus(execution.tokens)
    return usage_object(last.behaviour.usage_shape, total, caches=last.behaviour.prefix_cache is not None)


def _check_references(config: LabConfig, served: Mapping[str, Behaviour]) -> None:
    problems = [
        SrBenchError(
            f"router {name} calls {model}, which the lab does not serve",
            field=f"routers.{name}",
            mend=f"Served are: {', '.join(served) or 'none'}.",
        )
        for name, router in config.routers.items()
        for model in called_models(router)
        if model not in served
    ]
    if not served:
        problems.append(
            SrBenchError("the lab serves no model", field="models", mend="Add one under `models`.")
        )
    if problems:
        raise Problems(f"the lab configuration has {len(problems)} problem(s)", problems)
