"""What a run says of itself while it works: events for what is waited for or given up, and causes for its end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

from resources.journal.connection import Journal
from resources.journal.runs import add_event
from sr_bench_assets.plans.manifest import Limits
from sr_bench_assets.results.unsent import UnsentCells

TOLD_WAIT_S = 5.0
"""A wait for an endpoint of this long stands in the run's events."""


class Notices:
    """Used from the run's event loop; `causes` from any thread."""

    def __init__(self, journal: Journal, run_id: str, limits: Limits) -> None:
        self._journal = journal
        self._run_id = run_id
        self._unsent = UnsentCells(limits)
        self._told_of_waiting: dict[str, float] = {}

    def unsent(self, target_id: str, cause: str, count: int = 1) -> None:
        """`count` cells at a target ended, or were given up, without a request taken."""
        self._unsent.add(target_id, cause, count)

    def circuit_open(self, benchmark: str, target_id: str, count: int) -> None:
        """The rest of a benchmark's cells at a target will not be sent."""
        self._note(
            "circuit_open",
            f"{count} cells of {benchmark} at {target_id} will not be sent: too many failures in a row",
            {"benchmark": benchmark, "target_id": target_id, "count": count},
        )

    def waiting(self, endpoint: str, seconds: float, why: str) -> None:
        """A call may not leave for `seconds`. Told now and then: a run that stands still must not look like one that
        hangs."""
        now = time.monotonic()
        if seconds >= TOLD_WAIT_S and now >= self._told_of_waiting.get(endpoint, 0.0):
            self._told_of_waiting[endpoint] = now + seconds
            self._note(
                "waiting",
                f"{endpoint}: {why}; the next call may leave in {seconds:.0f} s",
                {"target_id": endpoint, "seconds": round(seconds, 1)},
            )

    def causes(self) -> list[str]:
        """Why cells were not sent, a phrase for each target and cause."""
        return self._unsent.causes()

    def _note(self, kind: str, message: str, data: Mapping[str, object]) -> None:
        # A write that may wait for the disk: off the loop.
        loop = asyncio.get_running_loop()
        loop.run_in_executor(None, add_event, self._journal, self._run_id, kind, message, data)
