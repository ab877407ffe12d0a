"""Which cells of a plan a run covers: all, or named cells (a recovery child, one partition of a larger plan)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sr_bench_assets.plans.manifest import FrozenPlan

Cell = tuple[str, str]
"""Case id and target id."""


@dataclass(frozen=True)
class RunScopeCells:
    """The part of a plan that one run covers. None: the whole plan."""

    cells: frozenset[Cell] | None = None

    @classmethod
    def parse(cls, scope: object) -> RunScopeCells:
        """Read the journal's scope: null, or a list of `[case_id, target_id]`."""
        if scope is None:
            return cls()
        if isinstance(scope, (list, tuple)):
            return cls(cells=frozenset((case_id, target_id) for case_id, target_id in scope))
        raise TypeError(f"unknown run scope {scope!r}")

    def covers_benchmark(self, benchmark: str) -> bool:
        """True when some cell of `benchmark` may be in scope."""
        if self.cells is not None:
            prefix = f"{benchmark}/"
            return any(case_id.startswith(prefix) for case_id, _ in self.cells)
        return True

    def covers(self, case_id: str, target_id: str) -> bool:
        """True when the cell is in scope."""
        return self.cells is None or (case_id, target_id) in self.cells


def partitions_of(plan: FrozenPlan, scope: RunScopeCells) -> list[str]:
    """The plan's benchmarks with cells in scope, in the plan's order."""
    return [benchmark for benchmark in plan.benchmarks if scope.covers_benchmark(benchmark)]


def planned_cells(plan: FrozenPlan, scope: RunScopeCells, case_ids: Sequence[str]) -> Iterator[Cell]:
    """The cells of these cases in scope, case by case, so that all targets meet a case at about one time."""
    targets: Iterable[str] = [target.id for target in plan.targets]
    for case_id in case_ids:
        for target_id in targets:
            if scope.covers(case_id, target_id):
                yield case_id, target_id


def planned_count(
    plan: FrozenPlan, scope: RunScopeCells, benchmark: str | None, target_id: str | None
) -> int:
    """How many cells are planned, of one benchmark and target or of all (None): the denominator of every figure."""
    if scope.cells is not None:
        return sum(
            (benchmark is None or case_id.startswith(f"{benchmark}/"))
            and (target_id is None or target == target_id)
            for case_id, target in scope.cells
        )
    targets = len(plan.targets) if target_id is None else 1
    return targets * sum(
        planned.case_count
        for name, planned in plan.benchmarks.items()
        if benchmark is None or name == benchmark
    )
