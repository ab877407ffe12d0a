"""What the journal keeps of a call, and what an executor sees of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from resources.gateway.outcome import CallOutcome
from resources.gateway.pricing import (
    CallCost,
    ReservationBound,
    price_call,
    price_mom,
    price_mom_direct,
    to_pico,
    unknown_cost,
)
from resources.gateway.record import Reply
from resources.gateway.request import ChatRequest
from resources.gateway.usage import MISSING, Usage
from resources.journal.calls import CallEnd
from resources.targets import Target
from sr_bench_assets.benchmarks.contract import CallView

NOTHING = CallCost("known", None, Decimal(0), Decimal(0))
"""The cost of a request that never left, or that was refused before anything was generated."""


MAX_CALL_PICO = 2**53
"""What one call is charged to the budget at most: about 9,000 USD. The journal adds up 64-bit columns, and a counter
that says more is no count of tokens; the exact cost stands in `cost_usd` all the same."""


def reserved_pico(request: ChatRequest, bound: ReservationBound) -> int:
    """Upper bound of the call's price in pico-dollars; 0 for a target without prices."""
    return min(bound.pico(len(request.body), request.max_tokens), MAX_CALL_PICO)


def reserved_tokens(request: ChatRequest) -> int:
    """Tokens that count against `tokens_per_minute` until the real usage is known.

    Three bytes of the request for a prompt token (English has four, most other languages fewer per token but
    more bytes per character), and all of `max_tokens`, as providers themselves reckon.
    """
    return -(-len(request.body) // 3) + request.max_tokens


def call_cost(outcome: CallOutcome, target: Target) -> CallCost:
    """Exact cost of a call, or the reason it is unknown.

    Nothing for a request that was refused or never left. A failed call proves no cost, whatever its stream holds, and
    neither does a stream of several replies: usage reconciliation says the same. A single model is priced by the model
    that the reply names. A MoM call is priced by the children of a complete receipt (an incomplete one leaves it
    `child_unknown`); without a receipt only a direct call (one inference call by a model that the router named) can be
    priced, else `receipt_missing`.
    """
    if outcome.kind == "refused" or outcome.never_sent:
        return NOTHING
    reply, receipt = outcome.reply, outcome.receipt
    if not _proves_spend(reply):
        return unknown_cost("call_failed" if reply.call_status == "failed" else "several_done")
    if target.kind == "single":
        return price_call(reply.model, reply.usage, target.prices)
    if receipt is not None and receipt.children is not None:
        if not receipt.complete:
            return unknown_cost("child_unknown")
        return price_mom(receipt.children, target.prices).total
    if receipt is None or receipt.problem is not None or receipt.inference_call_count != 1:
        return unknown_cost("receipt_missing")
    return price_mom_direct(receipt.selected_model, reply.usage, target.prices)


def spent_usage(outcome: CallOutcome, target: Target) -> Usage:
    """Tokens of all that the call generated, where that is proven; the counterpart of `call_cost`.

    A compound MoM call's final stream shows the last of its calls only: its tokens are the sum of a complete
    receipt's children, and unknown without one. The counts of a failed call prove nothing.
    """
    reply, receipt = outcome.reply, outcome.receipt
    if not _proves_spend(reply):
        return MISSING
    if target.kind == "single":
        return reply.usage
    if receipt is not None and receipt.children is not None:
        usages = [child.usage for child in receipt.children]
        return _summed(usages) if receipt.complete and usages else MISSING
    if receipt is None or receipt.problem is not None or receipt.inference_call_count != 1:
        return MISSING
    return reply.usage


def _proves_spend(reply: Reply) -> bool:
    return reply.call_status == "completed" and reply.done_count <= 1


def call_end(call_id: str, benchmark: str, outcome: CallOutcome, target: Target) -> CallEnd:
    """The journal's record of a call that ended in any way."""
    reply = outcome.reply
    spent = spent_usage(outcome, target)
    cost = call_cost(outcome, target)
    receipt = outcome.receipt
    return CallEnd(
        call_id=call_id,
        benchmark=benchmark,
        outcome=outcome.kind,
        spent_pico=None if cost.cost_usd is None else min(to_pico(cost.cost_usd), MAX_CALL_PICO),
        failure=reply.failure,
        http_status=outcome.http_status,
        model=reply.model,
        finish_reason=reply.finish_reason,
        output_complete=reply.output_complete,
        input_tokens=spent.input_tokens,
        cached_input_tokens=spent.cached_input_tokens,
        cache_write_tokens=spent.cache_write_tokens,
        output_tokens=spent.output_tokens,
        usage=reply.usage.as_dict(),
        cost_usd=None if outcome.kind == "refused" else cost.cost_usd,
        cost_reason=cost.reason,
        cache_neutral_cost_usd=None if outcome.kind == "refused" else cost.cache_neutral_cost_usd,
        ttft_s=outcome.ttft_s,
        latency_s=outcome.latency_s,
        selected_model=None if receipt is None else receipt.selected_model,
        decision=None if receipt is None else receipt.decision,
        lab=outcome.lab,
        record=_record(outcome),
        evidence=outcome.evidence,
        evidence_sha256=outcome.evidence_sha256,
    )


def call_view(call_id: str, outcome: CallOutcome) -> CallView:
    """What the executor gets."""
    reply = outcome.reply
    return CallView(
        call_id=call_id,
        call_status=reply.call_status,
        failure=reply.failure,
        text=reply.text,
        reasoning=reply.reasoning,
        final=reply.final,
        finish_reason=reply.finish_reason,
        output_complete=reply.output_complete,
        tool_calls=reply.tool_calls,
        usage=reply.usage.as_dict(),
        model=reply.model,
    )


def failed_view(failure: str) -> CallView:
    """What the executor gets of a call that could not be made."""
    return CallView("", "failed", failure, "", "", "", None, None, (), {"status": "unknown"}, None)


def _summed(usages: Sequence[Usage]) -> Usage:
    """The sum of known usages; unknown, with its reason, when one of them is."""
    unknown = next((usage for usage in usages if not usage.known), None)
    if unknown is not None:
        return unknown
    return Usage(
        "known",
        sum(usage.input_tokens or 0 for usage in usages),
        sum(usage.cached_input_tokens or 0 for usage in usages),
        sum(usage.cache_write_tokens or 0 for usage in usages),
        sum(usage.output_tokens or 0 for usage in usages),
    )


def _record(outcome: CallOutcome) -> Mapping[str, Any]:
    """The parts of the derived record that have no column of their own."""
    reply = outcome.reply
    record: dict[str, Any] = {
        "text": reply.text,
        "reasoning": reply.reasoning,
        "final": reply.final,
        "tool_calls": reply.tool_calls,
        "flags": reply.flags,
        "headers": outcome.headers,
        "done_count": reply.done_count,
    }
    if reply.error_message is not None:
        record["error_message"] = reply.error_message
    if outcome.never_sent:
        record["never_sent"] = True
    if outcome.detail is not None:
        record["detail"] = outcome.detail
    if outcome.retry_after_s is not None:
        record["retry_after_s"] = outcome.retry_after_s
    receipt = outcome.receipt
    if receipt is not None:
        record["receipt"] = receipt.as_dict()
    return record
