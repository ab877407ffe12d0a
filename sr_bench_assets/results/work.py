"""What a runner has to do: the cells of its partitions that were never sent, and what it needs for them."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from resources.errors import SrBenchError
from resources.journal.calls import dispatched_cells
from resources.journal.connection import Journal
from resources.journal.runs import Run
from resources.store import Store
from sr_bench_assets.benchmarks.contract import Executor
from sr_bench_assets.benchmarks.registry import get_benchmark
from sr_bench_assets.plans.manifest import FrozenPlan
from sr_bench_assets.plans.plan_store import dataset_file
from sr_bench_assets.results.case_file import CaseFile
from sr_bench_assets.results.endpoints import Places, needed_endpoints, places_of
from sr_bench_assets.results.lanes import Lane
from sr_bench_assets.results.scope import RunScopeCells


@dataclass(frozen=True)
class Work:
    """Cells and everything that is needed to run them. Close `cases` after use."""

    cases: CaseFile
    executors: Mapping[str, Executor]
    places: Places
    needs: Mapping[str, Sequence[str]]
    """Per benchmark the auxiliary endpoints without which its cells cannot be finished."""
    lanes: Sequence[Lane]
    counts: Mapping[str, int]
    """Cells to run, by benchmark."""
    calls_only: frozenset[str]
    """Benchmarks whose cells do nothing but calls and quick grading."""


def work_of(
    store: Store,
    journal: Journal,
    plan: FrozenPlan,
    run: Run,
    partitions: Sequence[str],
    env: Mapping[str, str],
) -> Work:
    """The work that `run` has left in `partitions` (benchmark ids).

    Raises `SrBenchError`: a benchmark cannot be executed by this version, a key is not set, or the dataset changed.
    """
    benchmarks = [get_benchmark(benchmark) for benchmark in partitions]
    executors: dict[str, Executor] = {}
    for benchmark in benchmarks:
        if benchmark.execute is None:
            raise SrBenchError(
                f"this version cannot execute {benchmark.id}",
                field="benchmarks",
                mend="leave it out of the plan",
            )
        executors[benchmark.id] = benchmark.execute
    places = places_of(plan, env)
    needs = needed_endpoints(benchmarks, places)
    cases = CaseFile(dataset_file(store, plan), plan.dataset.sha256)
    lanes, counts = lanes_to_run(
        cases,
        partitions,
        [target.id for target in plan.targets],
        RunScopeCells.parse(run.scope),
        dispatched_cells(journal, run.id),
    )
    calls_only = frozenset(
        benchmark.id for benchmark in benchmarks if benchmark.kind in ("multiple_choice", "grid", "judge")
    )
    return Work(cases, executors, places, needs, lanes, counts, calls_only)


def lanes_to_run(
    cases: CaseFile,
    partitions: Sequence[str],
    target_ids: Sequence[str],
    scope: RunScopeCells,
    begun: Collection[tuple[str, str]],
) -> tuple[list[Lane], Counter[str]]:
    """One lane for each target, and the number of cells to run by benchmark.

    `begun` are the cells (case id, target id) with any journaled call: they are never sent again, whatever
    became of them.
    """
    counts: Counter[str] = Counter(dict.fromkeys(partitions, 0))
    lanes: list[Lane] = []
    for target_id in target_ids:
        parts: list[tuple[str, Sequence[int]]] = []
        for benchmark in partitions:
            numbers = array(
                "L",
                (
                    number
                    for number, case_id in enumerate(cases.ids(benchmark))
                    if scope.covers(case_id, target_id) and (case_id, target_id) not in begun
                ),
            )
            counts[benchmark] += len(numbers)
            parts.append((benchmark, numbers))
        lanes.append(Lane(target_id, parts))
    return lanes, counts
