"""One call's entry in the accounting ledger, from its journal row and its retained reply. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from resources.gateway.pricing import price_mom
from resources.gateway.record import Reply
from resources.gateway.router import RouterReceipt
from resources.journal.money import decimal_text
from resources.targets import Target
from sr_bench_assets.usage.call_accounting import CallAccounting, bucket_tuple, recorded_accounting
from sr_bench_assets.usage.reconciliation import (
    BUCKETS,
    Reconciliation,
    RetainedStream,
    TerminalRecord,
    reconcile,
)


@dataclass(frozen=True)
class Retained:
    """What the kept evidence of a call says."""

    reply: Reply
    receipt: RouterReceipt | None
    """Of the retained response headers; None without router headers."""


Missing = Literal["evidence_missing", "evidence_changed"]


def call_entry(row: Mapping[str, Any], retained: Retained | Missing, target: Target) -> dict[str, Any]:
    """The ledger entry of one ended or open call; `row` has the columns of the journal's `calls`.

    `kept` is True where the recorded accounting stays in force although the stream cannot prove it: the
    receipt of a compound MoM call, read again from the retained headers, prices it.
    """
    recorded = recorded_accounting(row)
    found, kept = _judge(row, recorded, retained, target)
    holds = recorded if kept else _accounting(found, recorded)
    return {
        "id": row["id"],
        "outcome": found.outcome,
        "reason": found.reason,
        "wrong_buckets": list(found.wrong_buckets),
        "usage": None if holds.tokens is None else dict(zip(BUCKETS, holds.tokens, strict=True)),
        "priced_model": found.priced_model,
        "cost_usd": decimal_text(holds.cost_usd),
        "cost_reason": holds.cost_reason,
        "cache_neutral_cost_usd": decimal_text(holds.cache_neutral_cost_usd),
        "kept": kept,
        "changed": (holds.tokens, holds.cost_usd, holds.cache_neutral_cost_usd)
        != (recorded.tokens, recorded.cost_usd, recorded.cache_neutral_cost_usd),
        "evidence_sha256": row["evidence_sha256"],
    }


def _judge(
    row: Mapping[str, Any], recorded: CallAccounting, retained: Retained | Missing, target: Target
) -> tuple[Reconciliation, bool]:
    """The reconciliation, and whether the recorded accounting is kept all the same."""
    if row["outcome"] is None:
        return Reconciliation("unknown", "no_end_known"), False
    if row["outcome"] != "completed":
        return Reconciliation("unknown", "call_failed"), False
    if not isinstance(retained, Retained):
        return Reconciliation("unknown", retained), False
    reply, receipt = retained.reply, retained.receipt
    if reply.call_status != "completed":
        # The record says completed, the kept bytes do not.
        return Reconciliation("unknown", "stream_incomplete"), False
    found = reconcile(
        RetainedStream(reply.done_count, reply.finish_reason, reply.model, reply.raw_usage),
        TerminalRecord(
            kind=target.kind,
            status=row["outcome"],
            failure=row["failure"],
            model=row["model"],
            finish_reason=row["finish_reason"],
            usage=_recorded_usage(recorded),
            accounted_calls=accounted_calls(receipt),
        ),
        target.prices or {},
    )
    return found, found.reason == "several_calls" and _receipt_holds(recorded, receipt, target)


def accounted_calls(receipt: RouterReceipt | None) -> tuple[str, ...]:
    """The model of every call that a MoM's receipt accounts for; a direct call counts by its selected
    model."""
    if receipt is None:
        return ()
    if receipt.children is not None:
        return tuple(child.model or "" for child in receipt.children) if receipt.complete else ()
    if receipt.inference_call_count == 1 and receipt.selected_model:
        return (receipt.selected_model,)
    return ()


def _receipt_holds(recorded: CallAccounting, receipt: RouterReceipt | None, target: Target) -> bool:
    children = receipt.children if receipt is not None else None
    total = price_mom(children or (), target.prices).total
    return total.cost_usd is not None and total.cost_usd == recorded.cost_usd


def _recorded_usage(recorded: CallAccounting) -> dict[str, int | None] | None:
    return None if recorded.tokens is None else dict(zip(BUCKETS, recorded.tokens, strict=True))


def _accounting(found: Reconciliation, recorded: CallAccounting) -> CallAccounting:
    reason = None if found.cost_usd is not None else found.reason or "model_unknown"
    if reason in ("no_accounted_call", "several_calls") and recorded.cost_reason is not None:
        reason = recorded.cost_reason  # it says what is wrong with the receipt
    return CallAccounting(
        tokens=bucket_tuple(found.usage),
        cost_usd=found.cost_usd,
        cost_reason=reason,
        cache_neutral_cost_usd=found.cache_neutral_cost_usd,
    )
