"""What all cells of a run share: where their calls go, and what they need to make them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from resources.errors import SrBenchError
from resources.gateway.client import GatewayClient
from resources.gateway.pricing import ReservationBound
from resources.journal.calls import RateCeiling
from resources.journal.verdicts import Stopped
from resources.journal.writer import JournalWriter
from resources.targets import Target
from sr_bench_assets.plans.manifest import FrozenPlan
from sr_bench_assets.results.dispatcher import Dispatcher, Endpoint
from sr_bench_assets.results.notices import Notices
from sr_bench_assets.results.turnstile import Turnstile


@dataclass(frozen=True)
class Place:
    """Where the calls of one target go: its endpoint's queues, its key and the ceilings it shares."""

    target: Target
    endpoint: Endpoint
    api_key: str | None
    rate: RateCeiling | None
    bound: ReservationBound


@dataclass
class RunCalls:
    """What all sessions of one run share."""

    run_id: str
    plan: FrozenPlan
    writer: JournalWriter
    client: GatewayClient
    dispatcher: Dispatcher
    subjects: Mapping[str, Place]
    auxiliary: Mapping[str, Place]
    """By role: judge, simulator."""
    turnstile: Turnstile
    calls_only: frozenset[str]
    """Benchmarks whose cells do nothing but calls and quick grading: between calls they hold no slot."""
    halted: Callable[[Stopped | SrBenchError], None]
    """Told when the journal lets nothing more be sent: the run was ended or cancelled, or it cannot be written."""
    notices: Notices
    random: random.Random = field(default_factory=random.Random)
