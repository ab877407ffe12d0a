"""Faults on demand: which request fails how. Triggers are deterministic by seed, model, case and sighting."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from pydantic import Field, model_validator

from resources.targets import Strict

FaultKind = Literal[
    "rate_limit",  # 429 with Retry-After
    "unavailable",  # 503, with Retry-After unless retry_after_s is null
    "http_error",  # `status` with a JSON error
    "reset",  # connection closed before any response byte
    "stall",  # silence after `after_events` events, until the client leaves or `seconds` are over
    "heartbeat",  # only comment lines after `after_events` events, for `seconds`
    "cut",  # connection closed within the event that follows `after_events`
    "error_event",  # an error event after `after_events` events, then the end
    "invalid_json",  # an event that is no JSON
    "repeat",  # one phrase over and over, for `events` events
    "flood",  # `events` events of ever new words
    "slow",  # `seconds` more before the first token
    "wrong_config_hash",  # a router acknowledges another configuration
    "no_config_hash",  # a router acknowledges nothing
]
REFUSALS = frozenset({"rate_limit", "unavailable"})


class FaultRule(Strict):
    """One fault and its trigger: exactly one of rate, requests, every, cases, always."""

    kind: FaultKind
    rate: float | None = Field(default=None, ge=0, le=1)
    """Share of requests, drawn anew for each repetition of a request."""
    requests: list[int] | None = None
    """Indices of requests to this model since start or reset, the first is 1."""
    every: int | None = Field(default=None, ge=1)
    """Every so many requests to this model."""
    cases: list[str] | None = None
    """Case ids."""
    always: bool = False
    first_attempts: int | None = Field(default=None, ge=1)
    """Only for so many first sightings of the same request body; later ones go through."""
    limit: int | None = Field(default=None, ge=1)
    """No more than so often in all."""
    status: int = Field(default=500, ge=300, le=599)
    retry_after_s: float | None = Field(default=1, ge=0)
    after_events: int = Field(default=2, ge=0)
    seconds: float = Field(default=3600, ge=0)
    """Not scaled by time_scale."""
    events: int = Field(default=100_000, ge=1)

    @model_validator(mode="after")
    def _one_trigger(self) -> FaultRule:
        given = [self.rate is not None, self.requests is not None, self.every is not None]
        given += [self.cases is not None, self.always]
        if sum(given) != 1:
            raise ValueError("give exactly one trigger: rate, requests, every, cases or always")
        return self


def draw(*parts: object) -> float:
    """A number in [0, 1) that depends on nothing but `parts`."""
    digest = hashlib.blake2b("\x1f".join(map(str, parts)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


@dataclass(frozen=True)
class Sighting:
    """What a trigger may look at."""

    model: str
    case_id: str | None
    index: int
    """How many requests this model has had, this one included."""
    digest: str
    """SHA-256 of the request body."""
    attempt: int
    """How often this body has been seen, this time included."""


@dataclass
class FaultSwitch:
    """Decides for each request of one model whether a rule strikes; the first one that does wins."""

    seed: int
    rules: Sequence[FaultRule]
    struck: dict[int, int] = field(default_factory=dict[int, int])

    def strike(self, seen: Sighting) -> FaultRule | None:
        """The rule that strikes this request, or None. Counts towards the rule's `limit`."""
        for number, rule in enumerate(self.rules):
            if rule.limit is not None and self.struck.get(number, 0) >= rule.limit:
                continue
            if rule.first_attempts is not None and seen.attempt > rule.first_attempts:
                continue
            if self._triggers(number, rule, seen):
                self.struck[number] = self.struck.get(number, 0) + 1
                return rule
        return None

    def _triggers(self, number: int, rule: FaultRule, seen: Sighting) -> bool:
        if rule.always:
            return True
        if rule.requests is not None:
            return seen.index in rule.requests
        if rule.every is not None:
            return seen.index % rule.every == 0
        if rule.cases is not None:
            return seen.case_id in rule.cases
        what = seen.case_id or seen.digest
        return draw("fault", self.seed, number, rule.kind, seen.model, what, seen.attempt) < (rule.rate or 0)
