"""Targets: the single models and MoM entrypoints that are compared, and the registry that keeps them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Strict(BaseModel):
    """A model that refuses unknown fields, naming them."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Price(Strict):
    """USD per million tokens for the four exclusive buckets."""

    input: Decimal = Field(ge=0)
    cached_input: Decimal = Field(ge=0)
    cache_write: Decimal = Field(ge=0)
    output: Decimal = Field(ge=0)


class RateLimit(Strict):
    """Ceilings of one target, shared by all processes on one store. None: no ceiling."""

    requests_per_minute: int | None = Field(None, ge=1)
    tokens_per_minute: int | None = Field(None, ge=1)
    max_concurrency: int | None = Field(None, ge=1, le=1024)


class Target(Strict):
    """One endpoint and model under comparison (or a judge or simulator)."""

    id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")
    kind: Literal["single", "mom"]
    base_url: str
    model: str = Field(min_length=1)
    api_key_env: str | None = Field(None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    prices: dict[str, Price] | None = None
    pricing_basis: str | None = None
    request_params: dict[str, Any] = Field(default_factory=dict)
    expected_response_model: str | None = None
    rate_limit: RateLimit = Field(default_factory=RateLimit)
    config_hash: str | None = None
    preview_url: str | None = None
    preview_api_key_env: str | None = Field(None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    max_inference_calls: int | None = Field(None, ge=1)
    capture_recipe: bool = False
    session_mode: Literal["stateless", "session_aware"] = "stateless"
