"""The cells of a run in the order in which they run, one lane for each target."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple


class Cell(NamedTuple):
    """A case of a benchmark at a target; `case` is the number of the case within the benchmark's cases."""

    benchmark: str
    case: int
    target_id: str


class Lane:
    """The cells of one target, in the order in which they run."""

    def __init__(self, target_id: str, parts: Sequence[tuple[str, Sequence[int]]]) -> None:
        """`parts`: (benchmark, numbers of its cases to do) in order."""
        self.target_id = target_id
        self._parts = deque((benchmark, cases) for benchmark, cases in parts if len(cases))
        self._at = 0

    @property
    def benchmark(self) -> str | None:
        """Benchmark of the next cell; None at the end of the lane."""
        return self._parts[0][0] if self._parts else None

    def pop(self) -> Cell:
        benchmark, cases = self._parts[0]
        cell = Cell(benchmark, cases[self._at], self.target_id)
        self._at += 1
        if self._at == len(cases):
            self._parts.popleft()
            self._at = 0
        return cell

    def drop(self, benchmark: str) -> int:
        """Take all cells of `benchmark` that have not started off the lane; how many those were."""
        dropped = 0
        for index, (name, cases) in enumerate(self._parts):
            if name == benchmark:
                dropped = len(cases) - (self._at if index == 0 else 0)
                if index == 0:
                    self._at = 0
                del self._parts[index]
                break
        return dropped
