"""Targets: the single models and MoM entrypoints that are compared, and the registry that keeps them."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer


def plain_decimal(value: Decimal) -> str:
    """`value` in its one shortest plain notation (`0.10` → `0.1`, `1E+2` → `100`), so that equal amounts hash
    equally however they were written."""
    return format(value.normalize() + 0, "f")


Amount = Annotated[Decimal, PlainSerializer(plain_decimal, return_type=str, when_used="json")]
"""An exact amount of money, or a rate; JSON carries it as text."""

Rate = Annotated[Amount, Field(ge=0, le=1_000_000, decimal_places=18)]


class Strict(BaseModel):
    """A model that refuses unknown fields, naming them."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Price(Strict):
    """USD per million tokens for the four exclusive buckets."""

    input: Rate
    cached_input: Rate
    cache_write: Rate
    output: Rate


class RateLimit(Strict):
    """Ceilings of one target, shared by all processes on one store. None: no ceiling."""

    requests_per_minute: int | None = Field(default=None, ge=1)
    tokens_per_minute: int | None = Field(default=None, ge=1)
    max_concurrency: int | None = Field(default=None, ge=1, le=1024)


class Target(Strict):
    """One endpoint and model under comparison (or a judge or simulator)."""

    id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")
    kind: Literal["single", "mom"]
    base_url: str
    model: str = Field(min_length=1)
    api_key_env: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    prices: dict[str, Price] | None = None
    pricing_basis: str | None = None
    request_params: dict[str, Any] = Field(default_factory=dict)
    expected_response_model: str | None = None
    rate_limit: RateLimit = Field(default_factory=RateLimit)
    config_hash: str | None = None
    preview_url: str | None = None
    preview_api_key_env: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    max_inference_calls: int | None = Field(default=None, ge=1)
    capture_recipe: bool = False
    session_mode: Literal["stateless", "session_aware"] = "stateless"
