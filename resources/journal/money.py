"""Money in the journal: whole pico-dollars (10**-12 USD), rounded up, so that a budget is never overspent."""

from __future__ import annotations

from decimal import ROUND_CEILING, Context, Decimal

from resources.errors import SrBenchError

PICO = 12
MAX_PICO = 2**63 - 1
_EXACT = Context(prec=60, rounding=ROUND_CEILING)


def pico_from_usd(usd: Decimal) -> int:
    """`usd` in pico-dollars, rounded up. Raises `SrBenchError` beyond about 9.2 million USD."""
    pico = int(usd.scaleb(PICO, _EXACT).to_integral_value(ROUND_CEILING, _EXACT))
    if not -MAX_PICO <= pico <= MAX_PICO:
        raise SrBenchError(
            f"{usd} USD is more than the journal can count", mend="name an amount below 9 million USD"
        )
    return pico


def usd_from_pico(pico: int) -> Decimal:
    """Pico-dollars as exact USD."""
    return Decimal(pico).scaleb(-PICO, _EXACT)


def decimal_text(amount: Decimal | None) -> str | None:
    """An exact decimal in plain digits (never an exponent); None stays None."""
    if amount is None:
        return None
    text = format(amount, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
