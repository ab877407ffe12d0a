"""Which price applies to a call: the single model's, the receipt's children, or the router's selection."""

from __future__ import annotations

from resources.gateway.pricing import CallCost, price_call, price_mom, price_mom_direct, unknown_cost
from resources.gateway.record import Reply
from resources.gateway.router import RouterReceipt
from resources.targets import Target


def cost_of_call(target: Target, reply: Reply, receipt: RouterReceipt | None) -> CallCost:
    """Cost of one call of `target`.

    A reply that broke off has no final usage: `call_failed`. A single model is priced by the model named in
    the reply. A MoM call is priced by the children of a complete receipt, an incomplete one leaves it
    `child_unknown`; without a receipt only a direct call (count 1, selected model known) can be priced,
    anything else is `receipt_missing`.
    """
    if not reply.usage_final:
        return unknown_cost("call_failed")
    if target.kind == "single":
        return price_call(reply.model, reply.usage, target.prices)
    if receipt is not None and receipt.children is not None:
        if not receipt.complete:
            return unknown_cost("child_unknown")
        return price_mom(receipt.children, target.prices).total
    if receipt is None or receipt.problem is not None or receipt.inference_call_count != 1:
        return unknown_cost("receipt_missing")
    return price_mom_direct(receipt.selected_model, reply.usage, target.prices)
