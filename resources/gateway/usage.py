"""Raw provider usage → four exclusive token buckets, or the reason why that is not possible.

Three families are in use. OpenAI's chat and responses counters are inclusive: the prompt total holds what
was read from and written to a cache. Anthropic's are additive: `input_tokens` is fresh, cache counters come
on top. DeepSeek adds hit and miss counters that must sum to the prompt.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

UsageReason = Literal["missing", "zero", "invalid", "conflict", "total_mismatch"]

_PLAIN = (
    "prompt_tokens",
    "input_tokens",
    "completion_tokens",
    "output_tokens",
    "total_tokens",
    "cache_read_input_tokens",
    "prompt_cache_hit_tokens",
    "prompt_cache_miss_tokens",
    "cache_creation_input_tokens",
)
_PROMPT_DETAILS = ("prompt_tokens_details", "input_tokens_details")
_OUTPUT_DETAILS = ("completion_tokens_details", "output_tokens_details")
_READ_DETAIL = "cached_tokens"
_WRITE_DETAILS = ("cache_write_tokens", "cache_creation_tokens", "created_cache_tokens")


_MAX_TOKENS = 10**12
"""No model reads or writes as many in one call; sums of what is taken stay within 64 bits."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts of one call; the prompt is the sum of the first three."""

    status: Literal["known", "unknown"]
    input_tokens: int | None = None
    """Fresh prompt tokens, neither read from nor written to a cache."""
    cached_input_tokens: int | None = None
    cache_write_tokens: int | None = None
    output_tokens: int | None = None
    """Produced tokens, reasoning included."""
    cache_read_reported: bool = False
    """Some counter of cache reads was sent with a value; an explicit 0 is a report."""
    cache_write_reported: bool = False
    reason: UsageReason | None = None
    """Why the usage is unknown."""

    @property
    def known(self) -> bool:
        return self.status == "known"

    @property
    def prompt_tokens(self) -> int | None:
        """The whole prompt; None when unknown."""
        if self.input_tokens is None or self.cached_input_tokens is None or self.cache_write_tokens is None:
            return None
        return self.input_tokens + self.cached_input_tokens + self.cache_write_tokens

    def as_dict(self) -> dict[str, Any]:
        """The JSON object that tools read: the six figures, or the reason they are unknown."""
        if self.status == "unknown":
            return {"status": "unknown", "reason": self.reason}
        return {
            "status": "known",
            "input_tokens": self.input_tokens,
            "cached_input_tokens": self.cached_input_tokens,
            "cache_write_tokens": self.cache_write_tokens,
            "output_tokens": self.output_tokens,
            "cache_read_reported": self.cache_read_reported,
            "cache_write_reported": self.cache_write_reported,
        }

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Usage:
        """The inverse of `as_dict`; also reads the bare four buckets of price and reconciliation records."""
        if value.get("status", "known") == "unknown":
            return cls("unknown", reason=value.get("reason"))
        return cls(
            "known",
            value["input_tokens"],
            value["cached_input_tokens"],
            value["cache_write_tokens"],
            value["output_tokens"],
            bool(value.get("cache_read_reported", False)),
            bool(value.get("cache_write_reported", False)),
        )


MISSING = Usage("unknown", reason="missing")


class _Unusable(Exception):
    """Carries the reason out of the checks below."""

    def __init__(self, reason: UsageReason) -> None:
        super().__init__(reason)
        self.reason: UsageReason = reason


def normalise_usage(raw: object) -> Usage:
    """Normalise the `usage` value of a reply (an object, or None when the reply carried none).

    Checks run in this order and the first hit is the reason: `invalid` counters, `conflict` between names of
    one bucket, more cache tokens than prompt (`invalid`), `zero`, `missing`, `total_mismatch`. Unlisted
    members are ignored whatever their type.
    """
    if raw is None:
        return MISSING
    if not isinstance(raw, Mapping):
        return Usage("unknown", reason="invalid")
    try:
        return _normalise(cast("Mapping[str, object]", raw))
    except _Unusable as error:
        return Usage("unknown", reason=error.reason)


def _normalise(raw: Mapping[str, object]) -> Usage:
    plain = {name: _counter(raw[name]) for name in _PLAIN if name in raw}
    prompt_details = _details(raw, _PROMPT_DETAILS)
    reads = [_counter(details.get(_READ_DETAIL)) for details in prompt_details]
    writes = [_counter(details.get(name)) for details in prompt_details for name in _WRITE_DETAILS]
    reasonings = [_counter(details.get("reasoning_tokens")) for details in _details(raw, _OUTPUT_DETAILS)]
    hit, miss = plain.get("prompt_cache_hit_tokens"), plain.get("prompt_cache_miss_tokens")
    read = _agreed([*reads, plain.get("cache_read_input_tokens"), hit])
    written = _agreed([*writes, plain.get("cache_creation_input_tokens")])
    cached = (read or 0) + (written or 0)

    prompt = plain.get("prompt_tokens")
    inclusive = True
    if prompt is None:
        prompt = plain.get("input_tokens")
        inclusive = isinstance(raw.get("input_tokens_details"), Mapping)
        if prompt is not None and not inclusive:
            prompt += cached
    if prompt is not None:
        if hit is not None and miss is not None and hit + miss != prompt:
            raise _Unusable("conflict")
        if cached > prompt:
            raise _Unusable("invalid")

    output = plain.get("completion_tokens")
    if output is None:
        output = plain.get("output_tokens")
    if (prompt == 0 and output is not None) or (prompt is None and output == 0):
        raise _Unusable("zero")
    if prompt is None or output is None:
        raise _Unusable("missing")

    total = plain.get("total_tokens")
    if total and total != prompt + output:
        reasoning = next((value for value in reasonings if value is not None), None)
        if not reasoning or total != prompt + output + reasoning:
            raise _Unusable("total_mismatch")
        output += reasoning
    return Usage(
        "known",
        prompt - cached,
        read or 0,
        written or 0,
        output,
        read is not None,
        written is not None,
    )


def _counter(value: object) -> int | None:
    """A token count, None where none was sent; integral floats count, everything else is invalid, and so is a number
    that no call can have produced."""
    if value is None:
        return None
    if type(value) is int and 0 <= value <= _MAX_TOKENS:
        return value
    if type(value) is float and 0 <= value <= _MAX_TOKENS and value.is_integer():
        return int(value)
    raise _Unusable("invalid")


def _details(raw: Mapping[str, object], names: tuple[str, str]) -> list[Mapping[str, object]]:
    return [
        cast("Mapping[str, object]", value) for name in names if isinstance(value := raw.get(name), Mapping)
    ]


def _agreed(values: list[int | None]) -> int | None:
    """The one value that was sent under several names; None if under none."""
    sent = {value for value in values if value is not None}
    if len(sent) > 1:
        raise _Unusable("conflict")
    return sent.pop() if sent else None
