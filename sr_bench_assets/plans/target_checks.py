"""Plan checks on targets: identity, environment, prices and caps. Pure but for the given environment."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from resources.errors import SrBenchError
from resources.target_rules import target_problems
from resources.targets import Target
from sr_bench_assets.plans.draft import Draft, Placed
from sr_bench_assets.plans.manifest import Limits, Sampling


def check_targets(draft: Draft, needed_roles: set[str], env: Mapping[str, str]) -> list[SrBenchError]:
    """Problems of the targets under comparison and of the judge and simulator (checked as far as needed)."""
    auxiliary = [
        placed
        for role, placed in (("judge", draft.judge), ("simulator", draft.simulator))
        if placed and role in needed_roles
    ]
    used = [*draft.targets, *auxiliary]
    problems: list[SrBenchError] = []
    for placed in [*draft.targets, *(p for p in (draft.judge, draft.simulator) if p)]:
        problems += target_problems(placed.target, placed.path)
    problems += _identity(draft, auxiliary)
    problems += _environment(used, draft, env)
    if draft.mode == "preview":
        problems += _previewable(draft.targets)
    else:
        problems += _pricing(used, draft)
        unsure = {"sampling.max_tokens", "limits.max_output_tokens"}.intersection(draft.unsure)
        if draft.limits is not None and draft.sampling is not None and not unsure:
            problems += _caps(used, draft.limits, draft.sampling)
    return problems


def effective_max_tokens(target: Target, sampling: Sampling) -> int:
    """The output cap that a call to `target` carries: its own frozen setting, else the run's."""
    parameters = target.request_params
    own = parameters.get("max_tokens", parameters.get("max_completion_tokens"))
    return own if isinstance(own, int) else sampling.max_tokens


def _identity(draft: Draft, auxiliary: Iterable[Placed]) -> list[SrBenchError]:
    problems: list[SrBenchError] = []
    first: dict[str, Placed] = {}
    for placed in draft.targets:
        before = first.setdefault(placed.target.id, placed)
        if before is not placed:
            problems.append(
                SrBenchError(
                    f"The id {placed.target.id!r} is used twice (first at {before.path}).",
                    code="duplicate_id",
                    field=f"{placed.path}.id",
                    mend="Give each target an id of its own.",
                )
            )
    for placed in auxiliary:
        before = first.setdefault(placed.target.id, placed)
        if before.target != placed.target:
            problems.append(
                SrBenchError(
                    f"The id {placed.target.id!r} also names another endpoint (at {before.path}).",
                    code="duplicate_id",
                    field=f"{placed.path}.id",
                    mend="Use another id, or the same definition in both places.",
                )
            )
        if placed.target.kind != "single":
            problems.append(
                SrBenchError(
                    "Judges and simulators must be single models: a router could change under them.",
                    field=f"{placed.path}.kind",
                    mend="Set kind: single.",
                )
            )
    return problems


def _environment(used: Iterable[Placed], draft: Draft, env: Mapping[str, str]) -> list[SrBenchError]:
    names: list[tuple[str, str]] = []
    for placed in used:
        target = placed.target
        if target.api_key_env:
            names.append((f"{placed.path}.api_key_env", target.api_key_env))
        if target.preview_api_key_env and (draft.mode == "preview" or target.capture_recipe):
            names.append((f"{placed.path}.preview_api_key_env", target.preview_api_key_env))
    return [_missing_variable(field, name) for field, name in names if not env.get(name, "").strip()]


def _missing_variable(field: str, name: str) -> SrBenchError:
    # What does not look like a variable's name could be a key pasted in the wrong place: never show that.
    shown = name if len(name) < 24 or re.fullmatch(r"[A-Z_][A-Z0-9_]*", name) else "named here"
    return SrBenchError(
        f"The environment variable {shown} is not set or is empty.",
        code="missing_environment",
        field=field,
        mend=f"Set it where sr-bench runs (export {shown}=…); keys never go into a manifest."
        if shown == name
        else "Write the name of an environment variable, never a key; then set that variable.",
    )


def _pricing(used: Iterable[Placed], draft: Draft) -> list[SrBenchError]:
    if draft.cost_policy != "require_priced":
        return []
    problems: list[SrBenchError] = []
    for placed in used:
        if placed.target.prices is None:
            problems.append(
                SrBenchError(
                    "This target has no prices, and cost_policy is require_priced.",
                    code="unpriced_target",
                    field=f"{placed.path}.prices",
                    mend="Give input, cached_input, cache_write and output in USD per million tokens for "
                    "each response model, or set cost_policy: capability_only.",
                )
            )
        if placed.target.kind == "mom" and placed.target.max_inference_calls is None:
            problems.append(
                SrBenchError(
                    "A priced MoM target must bound its inference calls.",
                    code="missing_field",
                    field=f"{placed.path}.max_inference_calls",
                    mend="Set max_inference_calls (1 for direct routing) or cost_policy: capability_only.",
                )
            )
    return problems


def _caps(used: Iterable[Placed], limits: Limits, sampling: Sampling) -> list[SrBenchError]:
    problems: list[SrBenchError] = []
    for placed in used:
        parameters: dict[str, Any] = placed.target.request_params
        for name in ("max_tokens", "max_completion_tokens"):
            value = parameters.get(name)
            if isinstance(value, int) and value > limits.max_output_tokens:
                problems.append(
                    SrBenchError(
                        f"The target's fixed {name} ({value}) is above limits.max_output_tokens "
                        f"({limits.max_output_tokens}); lowering the cap does not rewrite the target.",
                        field=f"{placed.path}.request_params.{name}",
                        mend=f"Set limits.max_output_tokens to at least {value}, or use another target.",
                    )
                )
        ceiling = placed.target.rate_limit.tokens_per_minute
        tokens = effective_max_tokens(placed.target, sampling)
        if ceiling is not None and ceiling <= tokens:
            problems.append(
                SrBenchError(
                    f"{ceiling} tokens per minute cannot hold one call of up to {tokens} output tokens.",
                    field=f"{placed.path}.rate_limit.tokens_per_minute",
                    mend="Raise the rate, or lower max_tokens.",
                )
            )
    return problems


def _previewable(targets: Iterable[Placed]) -> list[SrBenchError]:
    problems: list[SrBenchError] = []
    for placed in targets:
        if placed.target.kind != "mom":
            problems.append(
                SrBenchError(
                    "Only MoM targets can be previewed.",
                    field=f"{placed.path}.kind",
                    mend="Remove this target, or set mode: live.",
                )
            )
        elif placed.target.preview_url is None:
            problems.append(
                SrBenchError(
                    "A previewed target needs preview_url.",
                    code="missing_field",
                    field=f"{placed.path}.preview_url",
                    mend="Set it to the router's /api/v1/routing/preview.",
                )
            )
    return problems
