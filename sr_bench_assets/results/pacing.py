"""How fast one endpoint may be called: concurrency window, refusals, rate probing, circuit breaker.

Pure state machines: they take the time as an argument and touch no clock, no loop and no network. The
dispatcher owns one `Pacer` for each endpoint (targets, judge, simulator).
"""

from __future__ import annotations

import random

MAX_BACKOFF_S = 30.0
"""Longest own pause after a refusal that names no Retry-After."""

NOT_THE_ENDPOINT = frozenset({"cancelled", "case_timeout", "run_timeout", "interrupted", "log_bytes_limit"})
"""Call failures of our own making: they say nothing of the endpoint, so the circuit breaker ignores them."""


class Window:
    """How many calls may be in flight at one endpoint: additive increase, multiplicative decrease.

    Works in epochs of one window of outcomes. An epoch with refusals ends with `size *= 1 - share / 2`, where
    `share` is the refused part (the proportional decrease of DCTCP, RFC 8257: a few refusals slow us a
    little, an endpoint that refuses everything halves us each time). Each accepted call adds `step / size`,
    so that one epoch without refusals adds `step`: a sixteenth of the ceiling, but no more than an eighth of
    the size, so that an endpoint known to take few is not overrun. Half a window of refusals in one epoch
    closes the window at once. `size` is a real number within [1, ceiling]; whole calls are admitted.
    """

    __slots__ = ("_accepted", "_epoch", "_refused", "ceiling", "size")

    def __init__(self, ceiling: int) -> None:
        self.ceiling = ceiling
        self.size = float(ceiling)
        self._epoch = 0
        self._accepted = 0
        self._refused = 0

    @property
    def epoch(self) -> int:
        """Number of the current epoch; a call keeps the one it was sent in."""
        return self._epoch

    @property
    def capacity(self) -> int:
        return int(self.size)

    def accepted(self, epoch: int) -> None:
        """A call that was sent in `epoch` was not refused."""
        if self.size < self.ceiling:
            step = max(1.0, min(self.ceiling / 16, self.size / 8))
            self.size = min(float(self.ceiling), self.size + step / self.size)
        if epoch == self._epoch:
            self._accepted += 1
            self._close_epoch_if_full()

    def refused(self, epoch: int) -> bool:
        """A call that was sent in `epoch` was refused. True: stop sending for the time the endpoint asked.

        Refusals of calls sent before the last decrease tell nothing new and change nothing.
        """
        if epoch != self._epoch:
            return False
        self._refused += 1
        if self._refused >= self.size / 2:
            self.size = max(1.0, self.size / 2)
            self._next_epoch()
            return True
        self._close_epoch_if_full()
        return False

    def _close_epoch_if_full(self) -> None:
        outcomes = self._accepted + self._refused
        if outcomes < int(self.size):
            return
        if self._refused:
            self.size = max(1.0, self.size * (1 - self._refused / outcomes / 2))
        self._next_epoch()

    def _next_epoch(self) -> None:
        self._epoch += 1
        self._accepted = 0
        self._refused = 0


class RateProbe:
    """How many calls may ask the journal for a rate slot at the same time.

    Without a limit in sight: any number. After the journal said "not before…", one, then doubling with every
    grant: a limited endpoint with hundreds of waiting cells must not cost hundreds of futile requests per
    slot.
    """

    __slots__ = ("_allowed", "asking")

    def __init__(self) -> None:
        self._allowed: int | None = None
        self.asking = 0

    @property
    def open(self) -> bool:
        return self._allowed is None or self.asking < self._allowed

    def ask(self) -> None:
        self.asking += 1

    def granted(self) -> None:
        self.asking -= 1
        if self._allowed is not None:
            self._allowed = None if self._allowed >= 1024 else self._allowed * 2

    def limited(self) -> None:
        self.asking -= 1
        self._allowed = 1

    def given_up(self) -> None:
        self.asking -= 1


class CircuitBreaker:
    """Opens for good after `limit` failures in a row (in the order in which calls ended)."""

    __slots__ = ("failures", "last_failure", "limit", "open")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.failures = 0
        self.open = False
        self.last_failure: str | None = None

    def succeeded(self) -> None:
        self.failures = 0

    def failed(self, failure: str) -> bool:
        """Count one failure; True when this one opens the circuit."""
        if failure in NOT_THE_ENDPOINT:
            return False
        self.failures += 1
        self.last_failure = failure
        if self.open or self.failures < self.limit:
            return False
        self.open = True
        return True


Turn = int
"""Leave to make one call (the window's epoch it was given in); goes back to exactly one of `Pacer.give_back`,
`rate_limited`, `accepted` and `refused`."""


class Pacer:
    """All that decides whether one endpoint may get one more call now. Times are seconds of one monotonic
    clock.
    """

    __slots__ = ("breaker", "in_flight", "paused_until", "probe", "window")

    def __init__(self, *, ceiling: int, max_consecutive_failures: int) -> None:
        self.window = Window(ceiling)
        self.breaker = CircuitBreaker(max_consecutive_failures)
        self.probe = RateProbe()
        self.paused_until = 0.0
        self.in_flight = 0

    def may_send(self, now: float) -> bool:
        return (
            not self.breaker.open
            and self.in_flight < self.window.capacity
            and now >= self.paused_until
            and self.probe.open
        )

    def take(self) -> Turn:
        self.in_flight += 1
        self.probe.ask()
        return self.window.epoch

    def dispatched(self) -> None:
        """The journal granted the call: it is being sent now."""
        self.probe.granted()

    def rate_limited(self, until: float) -> None:
        """The journal refused the call for now (target's own requests or tokens per minute)."""
        self.in_flight -= 1
        self.probe.limited()
        self.paused_until = max(self.paused_until, until)

    def give_back(self) -> None:
        """The turn was not used: nothing was dispatched."""
        self.in_flight -= 1
        self.probe.given_up()

    def accepted(self, turn: Turn) -> None:
        """The call ended, in whatever way but a refusal."""
        self.in_flight -= 1
        self.window.accepted(turn)

    def refused(self, turn: Turn, now: float, pause_s: float) -> None:
        """The endpoint refused the call (429, or 503 with Retry-After) and asked for a pause."""
        self.in_flight -= 1
        if self.window.refused(turn):
            self.paused_until = max(self.paused_until, now + pause_s)


def pause_after_refusal(retry_after_s: float | None, attempt: int, random_part: random.Random) -> float:
    """Seconds that a refused call waits before its next attempt (`attempt` counts from 0).

    The endpoint's own Retry-After when it gave one; else 1, 2, 4… up to 30 s, each less up to a quarter at
    random so that many refused calls do not come back together.
    """
    if retry_after_s is not None:
        return max(0.0, retry_after_s)
    return min(MAX_BACKOFF_S, 2.0 ** min(attempt, 16)) * (1 - random_part.random() / 4)
