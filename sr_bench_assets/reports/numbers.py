"""How figures look to people: percentages, money, tokens, seconds, small bars. No figure is computed here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

UNKNOWN = "unknown"
_EIGHTHS = " ▏▎▍▌▋▊▉"


def percent(share: float | None) -> str:
    """0.5365 → `53.7 %`."""
    return UNKNOWN if share is None else f"{100 * share:.1f} %"


def points(delta: float) -> str:
    """A difference of shares in percentage points, signed: −0.0789 → `−7.9`."""
    return f"{100 * delta:+.1f}".replace("-", "−")


def interval(ends: Sequence[float] | None) -> str:
    """`[51.9, 68.1]` in percent."""
    return "" if ends is None else f"[{100 * ends[0]:.1f}, {100 * ends[1]:.1f}]"


def points_interval(ends: Sequence[float]) -> str:
    """`[−50.5, +34.7]` in percentage points."""
    return f"[{points(ends[0])}, {points(ends[1])}]"


def usd(text: str | None) -> str:
    """An amount to four significant digits, at least cents: `$0.08774`, `$12.30`."""
    if text is None:
        return UNKNOWN
    amount = Decimal(text)
    if amount == 0:
        return "$0"
    places = max(2, 3 - amount.adjusted())
    return f"${amount.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_EVEN):,f}"


def at_least(text: str | None, known: str) -> str:
    """A total, or `≥ ` the known part of it."""
    return f"≥ {usd(known)}" if text is None else usd(text)


def saving(value: float | None) -> str:
    """`46.2 %`, with a minus where the candidate costs more."""
    return UNKNOWN if value is None else f"{value:.1f} %".replace("-", "−")


def count(number: int) -> str:
    """Tokens and other large counts: `1,234`, `45.9k`, `1.23M`."""
    if number < 10_000:
        return f"{number:,}"
    return f"{number / 1000:.1f}k" if number < 1_000_000 else f"{number / 1_000_000:.2f}M"


def tokens(row: Mapping[str, Any]) -> str:
    """Prompt (of it cached) → output tokens of a report row."""
    buckets = row["tokens"]
    if buckets is None:
        return UNKNOWN
    cached, written = buckets["cached_input_tokens"], buckets["cache_write_tokens"]
    prompt = buckets["input_tokens"] + cached + written
    share = f" ({count(cached)} cached)" if cached else ""
    return f"{count(prompt)}{share} → {count(buckets['output_tokens'])}"


def seconds(value: float | None) -> str:
    """`0.42 s`, `12.3 s`, `4 min 10 s`."""
    if value is None:
        return UNKNOWN
    if value >= 120:
        return f"{int(value // 60)} min {int(value % 60)} s"
    return f"{value:.2f} s" if value < 10 else f"{value:.1f} s"


def bar(share: float | None, width: int = 10) -> str:
    """A bar of `width` characters, filled to `share` in eighths of a character."""
    if share is None:
        return " " * width
    eighths = round(max(0.0, min(1.0, share)) * width * 8)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (_EIGHTHS[rest] if rest else "")).ljust(width)


def shares(counts: Mapping[str, int], most: int = 4) -> str:
    """`Qwen27 120 (80 %), Flash 30 (20 %)`; beyond `most` the rest is summed."""
    whole = sum(counts.values())
    named = list(counts.items())[:most]
    texts = [f"{name} {number} ({100 * number / whole:.0f} %)" for name, number in named]
    rest = whole - sum(number for _, number in named)
    return ", ".join([*texts, f"others {rest}"] if rest else texts)
