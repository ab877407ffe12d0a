"""Why cells of a run were not sent, in words for its end. Pure."""

from __future__ import annotations

from collections import Counter

from sr_bench_assets.plans.manifest import Limits


class UnsentCells:
    """Counts cells that ended without a request taken, by target and cause."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._counts: Counter[tuple[str, str]] = Counter()

    def add(self, target_id: str, cause: str, count: int = 1) -> None:
        self._counts[target_id, cause] += count

    def causes(self) -> list[str]:
        """One phrase for each target and cause that needs words."""
        limits = self._limits
        words = {
            "refused": f"refused until max_rejections_per_call ({limits.max_rejections_per_call}) was reached",
            "case_timeout": "refused, and asked to wait until case_timeout_s "
            f"({limits.case_timeout_s:g} s) was over",
            "circuit_open": f"its circuit is open after {limits.max_consecutive_failures} failures in a row",
            "executor_error": "the benchmark's executor failed before its first call",
            "dispatched_elsewhere": "taken by another runner",
        }
        return [
            f"{target_id}: {count} {words[cause]}"
            for (target_id, cause), count in sorted(self._counts.items())
            if cause in words
        ]
