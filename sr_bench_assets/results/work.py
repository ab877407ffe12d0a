"""What a runner has to do: the cells of its partitions that were never sent, lane by lane."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Sequence

from sr_bench_assets.results.case_file import CaseFile
from sr_bench_assets.results.lanes import Lane
from sr_bench_assets.results.scope import RunScopeCells


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
