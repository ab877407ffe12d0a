"""Does the recorded usage of a call, and with it its cost, hold against the retained reply? Pure rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from resources.gateway.pricing import price_call
from resources.gateway.usage import Usage, normalise_usage
from resources.targets import Price

BUCKETS = ("input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens")

Outcome = Literal["verified", "corrected", "unknown"]


@dataclass(frozen=True)
class RetainedStream:
    """What the retained reply says: `[DONE]` marks, finish reason, model, last raw usage object."""

    done_count: int
    finish_reason: str | None
    model: str | None
    usage: object


@dataclass(frozen=True)
class TerminalRecord:
    """What the journal says of the call; for a MoM `model` is the alias and `accounted_calls` the receipt's
    models."""

    kind: Literal["single", "mom"]
    status: str
    failure: str | None
    model: str | None
    finish_reason: str | None
    usage: Mapping[str, int | None] | None
    accounted_calls: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reconciliation:
    """verified: usage agrees; corrected: the stream's usage replaces the record's; unknown: see `reason`.

    Usage can hold while the cost is unknown: the model has no price.
    """

    outcome: Outcome
    reason: str | None = None
    wrong_buckets: tuple[str, ...] = ()
    usage: Mapping[str, int] | None = None
    priced_model: str | None = None
    cost_usd: Decimal | None = None
    cache_neutral_cost_usd: Decimal | None = None


def reconcile(stream: RetainedStream, record: TerminalRecord, prices: Mapping[str, Price]) -> Reconciliation:
    """Compare one call's record with its retained stream; the first check that fails names the reason.

    Only the four bucket counts are compared, not the reported flags.
    """
    reason = _contradiction(stream, record)
    if reason:
        return Reconciliation("unknown", reason)
    usage = normalise_usage(stream.usage)
    held = bucket_counts(usage)
    if held is None:
        return Reconciliation("unknown", "stream_usage_unknown")
    recorded = record.usage
    wrong = tuple(name for name in BUCKETS if recorded is None or recorded.get(name) != held[name])
    cost = price_call(stream.model, usage, prices)
    return Reconciliation(
        outcome="corrected" if wrong else "verified",
        wrong_buckets=wrong,
        usage=held,
        priced_model=stream.model if cost.cost_usd is not None else None,
        cost_usd=cost.cost_usd,
        cache_neutral_cost_usd=cost.cache_neutral_cost_usd,
    )


def bucket_counts(usage: Usage) -> dict[str, int] | None:
    """The four counts of a known usage; None when unknown."""
    counts = (usage.input_tokens, usage.cached_input_tokens, usage.cache_write_tokens, usage.output_tokens)
    known = [count for count in counts if count is not None]
    return dict(zip(BUCKETS, known, strict=True)) if usage.status == "known" and len(known) == 4 else None


def _contradiction(stream: RetainedStream, record: TerminalRecord) -> str | None:
    if record.status != "completed" or record.failure is not None:
        return "call_failed"
    if stream.done_count > 1:
        return "several_done"
    if stream.done_count == 0 and stream.finish_reason is None:
        return "stream_incomplete"
    served = record.model
    if record.kind == "mom":
        if len(record.accounted_calls) != 1:
            return "several_calls" if record.accounted_calls else "no_accounted_call"
        (served,) = record.accounted_calls
    if stream.model != served:
        return "model_mismatch"
    if stream.finish_reason != record.finish_reason:
        return "finish_mismatch"
    return None
