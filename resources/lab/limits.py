"""Rate limits that the lab enforces itself, as a provider would: 429 with Retry-After."""

from __future__ import annotations

import math
import time
from collections import deque

from resources.lab.stats import WINDOW_S
from resources.targets import RateLimit


class Limiter:
    """Requests per minute and concurrency of one model; refused requests do not count."""

    def __init__(self, limit: RateLimit) -> None:
        self.limit = limit
        self._accepted: deque[float] = deque()

    def refuse(self, inflight_before: int) -> int | None:
        """Seconds for Retry-After when a request must be refused now, else None (it counts from here on)."""
        now = time.monotonic()
        if self.limit.max_concurrency is not None and inflight_before >= self.limit.max_concurrency:
            return 1
        if self.limit.requests_per_minute is not None:
            while self._accepted and now - self._accepted[0] >= WINDOW_S:
                self._accepted.popleft()
            if len(self._accepted) >= self.limit.requests_per_minute:
                return max(1, math.ceil(self._accepted[0] + WINDOW_S - now))
            self._accepted.append(now)
        return None
