"""How a run ended, from how its cells ended and why it stopped, if it was stopped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

StopKind = Literal["cancelled", "timed_out", "budget_exhausted", "interrupted", "failed"]
"""Why a run was stopped, in the words of the run's status."""

BROKEN_OFF: frozenset[StopKind] = frozenset({"cancelled", "interrupted", "failed"})
"""Kinds of stop after which a run's partitions are not sealed: what is left is for a recovery."""
TOLD_TO_END = "its runner was told to end (by a signal)"
CALL_FAILURES: dict[StopKind, str] = {
    "cancelled": "cancelled",
    "timed_out": "run_timeout",
    "budget_exhausted": "cancelled",
    "interrupted": "cancelled",
    "failed": "cancelled",
}
"""What the calls and cells in flight fail of when their run is stopped."""


@dataclass(frozen=True)
class CellCounts:
    """How many of the planned cells ended how."""

    total: int
    completed: int
    failed: int
    ambiguous: int

    @property
    def undispatched(self) -> int:
        return self.total - self.completed - self.failed - self.ambiguous


@dataclass(frozen=True)
class Stop:
    """A run was stopped before all its cells had ended."""

    kind: StopKind
    reason: str


def concluded(counts: CellCounts, stop: Stop | None, unsent: Sequence[str] = ()) -> tuple[str, str | None]:
    """The run's final status and its reason; `unsent` says why cells were not sent.

    A run whose cells had all ended when it was stopped is judged by its cells. `partial` is a run that was not
    stopped and yet has cells that were never sent (circuit breaker, refusals) or whose end is unknown.
    """
    if (
        counts.undispatched == 0
        and counts.ambiguous == 0
        and (stop is None or stop.kind == "budget_exhausted")
    ):
        stop = None
    if stop is not None:
        return stop.kind, stop.reason
    if counts.undispatched or counts.ambiguous:
        parts = [
            f"{count} of {counts.total} cells {what}"
            for count, what in (
                (counts.undispatched, "were not dispatched" + (f" ({', '.join(unsent)})" if unsent else "")),
                (counts.ambiguous, "are ambiguous: sent, end unknown"),
            )
            if count
        ]
        return "partial", "; ".join(parts)
    if counts.total and counts.completed == 0:
        return "failed", f"all {counts.total} cells failed"
    return "completed", None
