"""Exact cost of calls in USD, from rates per million tokens. Nothing is rounded, unknown is never 0."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal, Inexact
from typing import Literal, Protocol

from resources.gateway.usage import Usage
from resources.targets import Price

CostReason = Literal[
    "model_unknown", "usage_unknown", "child_unknown", "receipt_missing", "call_failed", "several_done"
]

# Counts and rates have few digits, so sums of products are exact; the trap proves it each time.
_EXACT = Context(prec=400, traps=[Inexact])
_ZERO = Decimal(0)
_PICO = Decimal(10) ** 12


@dataclass(frozen=True, slots=True)
class CallCost:
    """Cost of one call, or the reason it is unknown."""

    status: Literal["known", "unknown"]
    reason: CostReason | None = None
    cost_usd: Decimal | None = None
    cache_neutral_cost_usd: Decimal | None = None
    """All prompt tokens at the fresh input rate, plus output."""
    by_bucket: Mapping[str, Decimal] | None = None
    """`input`, `cached_input`, `cache_write`, `output`; only for a cost of a single model."""


@dataclass(frozen=True, slots=True)
class MomCost:
    """Cost of a MoM call by its receipt: one cost per child, and the total, unknown if any child is."""

    children: tuple[CallCost, ...]
    total: CallCost


class ChildUsage(Protocol):
    """One child call of a MoM receipt."""

    @property
    def model(self) -> str | None: ...
    @property
    def usage(self) -> Usage: ...


def unknown_cost(reason: CostReason) -> CallCost:
    """A cost that is not known, and why."""
    return CallCost("unknown", reason)


def price_call(model: str | None, usage: Usage | None, prices: Mapping[str, Price] | None) -> CallCost:
    """Price one call by the model that served it (compared exactly with the names in `prices`).

    cost = Σ over buckets of tokens × rate / 10**6. Unknown: `usage_unknown` is told before `model_unknown`.
    """
    if usage is None or usage.status == "unknown":
        return unknown_cost("usage_unknown")
    price = prices.get(model) if prices and model is not None else None
    if price is None:
        return unknown_cost("model_unknown")
    fresh = usage.input_tokens or 0
    read = usage.cached_input_tokens or 0
    written = usage.cache_write_tokens or 0
    output = usage.output_tokens or 0
    by_bucket = {
        "input": _amount(fresh, price.input),
        "cached_input": _amount(read, price.cached_input),
        "cache_write": _amount(written, price.cache_write),
        "output": _amount(output, price.output),
    }
    neutral = _EXACT.add(_amount(fresh + read + written, price.input), by_bucket["output"])
    return CallCost("known", None, _total(by_bucket.values()), neutral, by_bucket)


def price_mom(children: Sequence[ChildUsage], prices: Mapping[str, Price] | None) -> MomCost:
    """Price a MoM call by its receipt. A receipt without any child call prices nothing: unknown."""
    costs = tuple(price_call(child.model, child.usage, prices) for child in children)
    amounts = [cost.cost_usd for cost in costs if cost.cost_usd is not None]
    neutrals = [cost.cache_neutral_cost_usd for cost in costs if cost.cache_neutral_cost_usd is not None]
    if not costs or len(amounts) < len(costs) or len(neutrals) < len(costs):
        return MomCost(costs, unknown_cost("child_unknown"))
    return MomCost(costs, CallCost("known", None, _total(amounts), _total(neutrals)))


def price_mom_direct(
    selected_model: str | None, usage: Usage | None, prices: Mapping[str, Price] | None
) -> CallCost:
    """Price a MoM call that made exactly one inference call, by the model the router selected.

    The alias that was asked for is never used: a price listed under it is not a price of any model.
    """
    return price_call(selected_model, usage, prices)


class ReservationBound:
    """Upper bound of what requests to one target can cost, before they are sent.

    A token of the prompt is at least one byte of the request body, whose JSON syntax outweighs a chat template's own
    tokens. Every prompt token is taken at the dearest prompt rate of any listed model, `max_tokens` at the dearest
    output rate. With several inference calls (MoM) each may read the outputs of all the others. The rates are looked at
    once; the rest is integers.
    """

    __slots__ = ("_calls", "_output", "_prompt", "_scale")

    def __init__(self, prices: Mapping[str, Price] | None, inference_calls: int) -> None:
        rates = [] if not prices else list(prices.values())
        prompt = max(
            (max(price.input, price.cached_input, price.cache_write) for price in rates), default=_ZERO
        )
        output = max((price.output for price in rates), default=_ZERO)
        digits = max(0, *(-int(rate.normalize().as_tuple().exponent) for rate in (prompt, output)))
        self._calls = inference_calls
        self._prompt = int(_EXACT.scaleb(prompt, digits))
        self._output = int(_EXACT.scaleb(output, digits))
        self._scale = 10**digits

    def pico(self, request_bytes: int, max_tokens: int) -> int:
        """The bound for one request in whole pico-dollars, rounded up; 0 where nothing is priced."""
        calls = self._calls
        prompt = calls * (request_bytes + (calls - 1) * max_tokens)
        # A rate is USD for a million tokens: a million pico-dollars a token.
        return -(-1_000_000 * (prompt * self._prompt + calls * max_tokens * self._output) // self._scale)


def to_pico(amount_usd: Decimal) -> int:
    """Whole pico-dollars (10**-12 USD), rounded up, for the journal's integer columns."""
    return int(_EXACT.multiply(amount_usd, _PICO).to_integral_value(rounding=ROUND_CEILING))


def decimal_text(amount: Decimal) -> str:
    """An exact decimal without exponent or trailing zeros: `0.00004494`, `0`."""
    return format(amount.normalize(_EXACT), "f") if amount else "0"


def _amount(tokens: int, rate: Decimal) -> Decimal:
    return _EXACT.multiply(Decimal(tokens), rate).scaleb(-6, _EXACT)


def _total(amounts: Iterable[Decimal]) -> Decimal:
    total = _ZERO
    for amount in amounts:
        total = _EXACT.add(total, amount)
    return total
