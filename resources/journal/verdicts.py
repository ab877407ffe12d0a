"""What the journal answers to a request that wants to be sent."""

from __future__ import annotations

from dataclasses import dataclass

from resources.journal.rates import Cause


@dataclass(frozen=True)
class Granted:
    """The dispatch is durable: send the request."""

    call_id: str
    seq: int
    dispatched_at: float


@dataclass(frozen=True)
class BudgetExhausted:
    """The budget cannot cover this reservation now; calls in flight hold `reserved_pico`, some of which may
    yet come back."""

    needed_pico: int
    available_pico: int
    reserved_pico: int


@dataclass(frozen=True)
class RateLimited:
    """A ceiling shared with other processes is reached; ask again at `until` (seconds since the epoch)."""

    until: float
    cause: Cause


@dataclass(frozen=True)
class Duplicate:
    """This step and attempt of the cell is journaled already: do not send."""

    call_id: str


@dataclass(frozen=True)
class Stopped:
    """The run has ended or is to be cancelled: send nothing more."""

    reason: str


Verdict = Granted | BudgetExhausted | RateLimited | Duplicate | Stopped
