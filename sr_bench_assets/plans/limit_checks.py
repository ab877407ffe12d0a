"""Plan checks on limits and sampling: what would contradict itself. Pure."""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise

from resources.errors import SrBenchError
from sr_bench_assets.plans.manifest import Limits, Sampling

HIERARCHY = ("connect_timeout_s", "idle_timeout_s", "total_timeout_s", "case_timeout_s", "max_run_seconds")
"""Each lasts at most as long as the next: an inner bound beyond an outer one could never end a call."""


def check_limits(
    limits: Limits | None, sampling: Sampling | None, unsure: Collection[str] = ()
) -> list[SrBenchError]:
    """Problems between limits, and between limits and sampling; members in `unsure` are passed over."""
    if limits is None:
        return []
    problems: list[SrBenchError] = []
    for inner, outer in pairwise(HIERARCHY):
        short, long = getattr(limits, inner), getattr(limits, outer)
        if short > long and not {f"limits.{inner}", f"limits.{outer}"}.intersection(unsure):
            problems.append(
                SrBenchError(
                    f"{inner} ({short:g} s) is longer than {outer} ({long:g} s).",
                    field=f"limits.{inner}",
                    mend=f"Set limits.{inner} to at most {long:g}, or limits.{outer} to at least {short:g}.",
                )
            )
    sure = not {"sampling.max_tokens", "limits.max_output_tokens"}.intersection(unsure)
    if sure and sampling is not None and sampling.max_tokens > limits.max_output_tokens:
        problems.append(
            SrBenchError(
                f"max_tokens ({sampling.max_tokens}) is above the limit max_output_tokens "
                f"({limits.max_output_tokens}).",
                field="sampling.max_tokens",
                mend=f"Set sampling.max_tokens to at most {limits.max_output_tokens}, or raise the limit.",
            )
        )
    return problems
