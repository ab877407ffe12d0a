"""The runner process: works through one run's partitions, each as an in-process Dagster run.

Started by `sr-bench run` and `sr-bench recover` as `python -m cli.runner RUN_ID`; it outlives them.
"""

from __future__ import annotations

import logging
import os
import sys
import traceback

from sr_bench_assets.results.execution import RunExecution

from resources.errors import SrBenchError
from resources.journal.connection import Journal, open_journal
from resources.journal.runs import Run, add_event, finish_run, get_run
from resources.store import Store
from sr_bench_assets.plans.plan_store import get_plan
from sr_bench_assets.results.scope import RunScopeCells, partitions_of


def main(run_id: str) -> int:
    """Run `run_id` to its end; returns 0 when it completed, 1 when not, 2 when it could not be run."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    store = Store.open(None)
    journal = open_journal(store)
    run = get_run(journal, run_id)
    if run.is_terminal:
        print(f"Run {run.id} has ended already ({run.status}); nothing is sent again.", file=sys.stderr)
        return 0 if run.status == "completed" else 1
    try:
        return _work(store, journal, run)
    except SrBenchError as error:
        print(f"Error: {error.message}", file=sys.stderr)
        if error.code != "run_busy":
            # Another runner's run is not ours to end.
            _fail(journal, run, error.message)
        return 2
    except BaseException as error:
        traceback.print_exc()
        _fail(journal, run, f"{type(error).__name__}: {error}")
        raise


def _work(store: Store, journal: Journal, run: Run) -> int:
    plan = get_plan(store, run.plan_sha256)
    partitions = partitions_of(plan, RunScopeCells.parse(run.scope))
    execution = RunExecution(store, journal, plan, run.id, partitions, os.environ)
    from cli.partition_runs import PartitionRuns

    # Dagster is imported before the first call leaves: its import holds the interpreter for tenths of a
    # second, which would show up as latency of the calls.
    materializer = PartitionRuns(store, journal, plan, run.id)
    execution.should_stop = materializer.cancelled_in_dagster
    execution.start()
    try:
        for benchmark in partitions:
            if not materializer.materialize(benchmark):
                execution.stop("the materialization of its partition failed or was cancelled")
                break
    finally:
        execution.close()
    ended = get_run(journal, run.id)
    materializer.scorecard()
    return 0 if ended.status == "completed" else 1


def _fail(journal: Journal, run: Run, reason: str) -> None:
    add_event(journal, run.id, "runner_error", reason)
    finish_run(journal, run.id, "failed", reason)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
