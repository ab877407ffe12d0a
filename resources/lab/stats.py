"""What the lab counts: requests, re-sends by body digest, refusals, and the times of each request."""

from __future__ import annotations

import time
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

MAX_RECORDS = 200_000
WINDOW_S = 60.0


@dataclass(slots=True)
class RequestRecord:
    """One chat request. Times are seconds since the epoch by the server's clock."""

    seq: int
    model: str
    case_id: str | None
    digest: str
    attempt: int
    """How often this body had been seen, this time included."""
    received_at: float
    resend: bool = False
    """The same body was seen before and not refused then."""
    fault: str | None = None
    first_token_at: float | None = None
    ended_at: float | None = None
    outcome: str = "running"
    """running | completed | refused | failed (a fault or an error answer) | disconnected (the client left)"""

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass
class Stats:
    """Counters since start or the last reset."""

    records: deque[RequestRecord] = field(default_factory=lambda: deque(maxlen=MAX_RECORDS))
    by_model: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])
    bodies: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    """Body digest → [times seen, times refused]."""
    other: Counter[str] = field(default_factory=Counter[str])
    """Requests that are no chat: models, previews, config…"""
    inflight: int = 0
    max_inflight: int = 0
    seq: int = 0
    resends: int = 0
    started_at: float = field(default_factory=time.time)
    _arrivals: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    _inflight: Counter[str] = field(default_factory=Counter[str])

    def arrive(self, model: str, case_id: str | None, digest: str) -> RequestRecord:
        """Record a chat request as it comes in."""
        self.seq += 1
        self.inflight += 1
        self._inflight[model] += 1
        self.max_inflight = max(self.max_inflight, self.inflight)
        seen = self.bodies.setdefault(digest, [0, 0])
        resend = seen[0] > seen[1]
        seen[0] += 1
        self.resends += resend
        record = RequestRecord(self.seq, model, case_id, digest, seen[0], time.time(), resend)
        self.records.append(record)
        counter = self.by_model.setdefault(model, Counter())
        counter["requests"] += 1
        counter["resends"] += resend
        self._arrivals.setdefault(model, []).append(record.received_at)
        return record

    def requests_of(self, model: str) -> int:
        """Chat requests that `model` has had."""
        return self.by_model[model]["requests"] if model in self.by_model else 0

    def inflight_of(self, model: str) -> int:
        """Requests of `model` that have not ended."""
        return self._inflight[model]

    def end(self, record: RequestRecord, outcome: str) -> None:
        """Record how a request ended."""
        record.ended_at = time.time()
        record.outcome = outcome
        self.inflight -= 1
        self._inflight[record.model] -= 1
        self.by_model[record.model][outcome] += 1
        if record.fault is not None:
            self.by_model[record.model][f"fault:{record.fault}"] += 1
        if outcome == "refused" and record.digest in self.bodies:
            self.bodies[record.digest][1] += 1

    def summary(self) -> dict[str, Any]:
        """The document of `GET /lab/stats`."""
        total: Counter[str] = Counter()
        for counter in self.by_model.values():
            total.update(counter)
        return {
            "lab": True,
            "now": time.time(),
            "started_at": self.started_at,
            "requests": self.seq,
            "distinct_bodies": len(self.bodies),
            "resends": self.resends,
            "repeats_after_refusal": self.seq - len(self.bodies) - self.resends,
            "completed": total["completed"],
            "refused": total["refused"],
            "failed": total["failed"],
            "disconnected": total["disconnected"],
            "inflight": self.inflight,
            "max_inflight": self.max_inflight,
            "first_request_at": self.records[0].received_at if self.records else None,
            "last_end_at": max((record.ended_at or 0 for record in self.records), default=0) or None,
            "other_requests": dict(sorted(self.other.items())),
            "models": {
                model: {**dict(sorted(counter.items())), "max_in_60_s": busiest_window(self._arrivals[model])}
                for model, counter in sorted(self.by_model.items())
            },
        }


def busiest_window(arrivals: list[float], window_s: float = WINDOW_S) -> int:
    """The most arrivals (ascending times) within any half-open window of `window_s` seconds."""
    most = start = 0
    for end, at in enumerate(arrivals):
        while at - arrivals[start] >= window_s:
            start += 1
        most = max(most, end - start + 1)
    return most
