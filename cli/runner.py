"""The runner process: works through one run's partitions, each as an in-process Dagster run.

`python -m cli.runner RUN_ID`, or `python -m cli.runner -` to read the id from standard input once it is known:
`sr-bench run` starts it so, to have the imports done while it verifies the plan. It outlives its starter.
"""

# ruff: noqa: E402 - the imports below take time; the collector rests meanwhile, and until all are done
from __future__ import annotations

import gc

gc.disable()

from resources.journal.commit_process import CommitProcess

# Now, as long as this process is small, has no threads and no open database.
COMMITS = CommitProcess.forked() if __name__ == "__main__" else None

import logging
import os
import signal
import sys
import traceback

from resources.errors import SrBenchError
from resources.journal.connection import Journal, open_journal
from resources.journal.leases import live_runner
from resources.journal.patience import patiently
from resources.journal.runs import Run, add_event, finish_run, get_run
from resources.store import Store
from sr_bench_assets.plans.plan_store import get_plan
from sr_bench_assets.results.execution import RunExecution
from sr_bench_assets.results.scope import RunScopeCells, partitions_of

NOT_OURS = ("run_active", "run_ended")
"""Errors that say another runner has the run, or had it: it is not this one's to end."""


def main(argument: str) -> int:
    """Run `argument` to its end; returns 0 when it completed, 1 when not, 2 when it could not be run."""
    store = Store.open(None)
    run_id = _handed_over(store) if argument == "-" else argument
    if not run_id:
        return 0
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    journal = open_journal(store)
    run = patiently(lambda: get_run(journal, run_id))
    if run.is_terminal:
        print(f"Run {run.id} has ended already ({run.status}); nothing is sent again.", file=sys.stderr)
        return 0 if run.status == "completed" else 1
    try:
        return _work(store, journal, run)
    except SrBenchError as error:
        print(f"Error: {error.message}", file=sys.stderr)
        if error.code not in NOT_OURS:
            _fail(journal, run, error.message)
        return 2
    except KeyboardInterrupt:
        # The run was ended as interrupted on the way here.
        return 1
    except BaseException as error:
        traceback.print_exc()
        _fail(journal, run, f"{type(error).__name__}: {error}")
        raise


def _handed_over(store: Store) -> str:
    """The run's id from standard input, empty when the starter needs no runner; output goes to its folder then."""
    run_id = sys.stdin.readline().strip()
    if run_id:
        path = store.run_dir(run_id) / "runner.log"
        log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(log, sys.stdout.fileno())
        os.dup2(log, sys.stderr.fileno())
        os.close(log)
    return run_id


def _work(store: Store, journal: Journal, run: Run) -> int:
    plan = get_plan(store, run.plan_sha256)
    partitions = partitions_of(plan, RunScopeCells.parse(run.scope))
    execution = RunExecution(store, journal, plan, run.id, partitions, os.environ, commits=COMMITS)
    for number in (signal.SIGTERM, signal.SIGHUP):
        # As Ctrl-C, from the first call on: what is in flight ends and is journaled. Dagster does the same later.
        signal.signal(number, signal.default_int_handler)
    execution.start()
    try:
        # Calls are in flight: now there is time for what takes most of a second to import.
        import polars  # noqa: F401 - what seals and reports will ask for
        import pyarrow.parquet  # noqa: F401

        from cli.partition_runs import PartitionRuns

        gc.freeze()  # what was imported stays for good: the collector need not look at it again
        gc.enable()
        if execution.broken_off:
            return 1
        materializer = PartitionRuns(store, journal, plan, run.id)
        execution.should_stop = materializer.cancelled_in_dagster
        for benchmark in partitions:
            if execution.broken_off:
                return 1  # nothing to seal: the run is concluded at once
            problem = materializer.materialize(benchmark)
            if problem is not None:
                kind, reason = problem
                execution.stop(reason, kind=kind)
                break
    finally:
        execution.close()
    ended = patiently(lambda: get_run(journal, run.id))
    materializer.scorecard()
    return 0 if ended.status == "completed" else 1


def _fail(journal: Journal, run: Run, reason: str) -> None:
    add_event(journal, run.id, "runner_error", reason)
    if live_runner(journal, run.id) is None:
        # With a lease of ours still held the run was not concluded: its cells get their states, and the run its
        # end, from the reconciliation that finds this process dead. Another runner's run is not ours to end.
        finish_run(journal, run.id, "failed", reason)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
