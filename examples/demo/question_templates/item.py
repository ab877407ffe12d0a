"""One question before its options are shuffled, and how wrong options are made."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

MAX_OPTIONS = 10


@dataclass(frozen=True)
class Item:
    """A question, its one right option, and wrong options (none equal to the right one)."""

    question: str
    right: str
    wrong: tuple[str, ...]


Template = Callable[[random.Random], Item]


def choice(question: str, right: str, wrong: Sequence[str]) -> Item:
    """An item with given wrong options; those equal to the right one or repeated are dropped."""
    kept = [option for option in dict.fromkeys(wrong) if option != right]
    return Item(question, right, tuple(kept[: MAX_OPTIONS - 1]))


def number(
    rng: random.Random,
    question: str,
    value: Fraction | int,
    *,
    unit: str = "",
    places: int = 0,
    traps: Sequence[Fraction | int] = (),
) -> Item:
    """An item whose right option is `value` with `places` decimals; wrong ones are the results of typical
    mistakes (`traps`) and numbers near by."""
    exact = Fraction(value)
    step = Fraction(1, 10**places)
    right = show(exact, places, unit)
    wrong = [show(Fraction(trap), places, unit) for trap in traps]
    spread = max(abs(exact) / 10, step)
    while len(dict.fromkeys([right, *wrong])) < MAX_OPTIONS:
        moved = exact + spread * rng.choice((-1, 1)) * rng.randint(1, 9)
        if moved >= 0 or exact < 0:
            wrong.append(show(moved, places, unit))
        else:
            spread = max(spread * 2, step)
    return choice(question, right, wrong)


def show(value: Fraction, places: int, unit: str) -> str:
    """`value` rounded half up to `places` decimals, with its unit (`$` and `−` stand before)."""
    scaled = value * 10**places
    rounded = (2 * abs(scaled).numerator + scaled.denominator) // (2 * scaled.denominator)
    digits = f"{rounded:0{places + 1}d}"
    text = f"{int(digits[:-places]):,}.{digits[-places:]}" if places else f"{int(digits):,}"
    sign = "-" if value < 0 and rounded else ""
    if unit == "$":
        return f"{sign}${text}"
    return f"{sign}{text}{'' if unit in ('', '%', '°') else ' '}{unit}"
