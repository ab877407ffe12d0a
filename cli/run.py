"""`run`, `runs` and `cancel`: start a runner process for a frozen plan, list runs, stop one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.output import Ctx, emit, say
from resources.errors import Incomplete, SrBenchError

if TYPE_CHECKING:
    from resources.journal.runs import Run

if TYPE_CHECKING:
    from resources.journal.run_record import Progress, Run

EXIT_INTERRUPTED_WAIT = 130


@click.command()
@click.option(
    "--manifest", required=True, type=click.Path(path_type=Path), help="A frozen plan (or a manifest)."
)
@click.option("--detach", is_flag=True, help="Return at once; the runner works on.")
@click.option("--idempotency-key", help="Repeating a key returns the same run and sends nothing again.")
@click.pass_obj
def run(obj: Ctx, manifest: Path, detach: bool, idempotency_key: str | None) -> int:
    """Run a frozen plan in a process of its own.

    Without --detach the command shows progress and waits; Ctrl-C ends the wait only (exit code 130), the
    runner goes on. `sr-bench cancel RUN` stops it.
    """
    from cli.launch import warm_runner

    store = obj.open_store()
    with warm_runner(store) as runner:
        started, created = _submitted(obj, manifest, idempotency_key)
        if started.status == "queued":
            runner.hand_over(started.id)
    if not created:
        say(f"Idempotency key {idempotency_key!r} belongs to run {started.id}; nothing is sent again.")
    if detach:
        emit({"run_id": started.id, "plan_sha256": started.plan_sha256, "status": started.status})
        return 0
    return wait_and_report(obj, started.id, runner.process)


def _submitted(obj: Ctx, manifest: Path, idempotency_key: str | None) -> tuple[Run, bool]:
    """Verify the plan and its endpoints, and journal its run."""
    from cli.launch import create
    from resources.endpoints import require_endpoints
    from resources.journal.runs import find_run_by_key
    from sr_bench_assets.plans.freeze import frozen_from

    store, journal = obj.open_journal()
    plan = frozen_from(manifest, store)
    if idempotency_key is None or find_run_by_key(journal, idempotency_key) is None:
        require_endpoints(plan.all_targets, os.environ)
    return create(journal, plan, idempotency_key)


def wait_and_report(obj: Ctx, run_id: str, runner: subprocess.Popen[bytes] | None = None) -> int:
    """Follow a run to its end and print its summary; returns the exit code."""
    from cli.progress import follow
    from cli.run_views import run_view
    from resources.journal.progress import progress

    store, journal = obj.open_journal()
    try:
        ended = follow(store, journal, run_id, runner)
    except KeyboardInterrupt:
        say(
            f"\nStopped waiting; run {run_id} goes on. Follow it with `sr-bench show {run_id}`, "
            f"stop it with `sr-bench cancel {run_id}`."
        )
        return EXIT_INTERRUPTED_WAIT
    row = run_view(ended, progress(journal, run_id))
    if obj.wants_json:
        emit(row)
    else:
        from sr_bench_assets.reports.report import build_report
        from sr_bench_assets.reports.terminal import print_report

        print_report(build_report(store, journal, run_id))
    if ended.status != "completed":
        raise Incomplete(
            f"Run {run_id} ended {ended.status}{': ' + ended.reason.rstrip('.') if ended.reason else ''}.",
            code=ended.status,
            mend=f"`sr-bench show {run_id} --events` says what happened; "
            f"`sr-bench recover-plan {run_id} --mode undispatched` lists what can be continued.",
        )
    if row["progress"]["failed"]:
        say(
            f"{row['progress']['failed']} cells failed; they count as not correct: "
            f"`sr-bench show {run_id} --results`."
        )
    return 0


def _runs_of_a_live_journal(obj: Ctx, limit: int | None) -> list[tuple[Run, Progress]]:
    from resources.journal.leases import reconcile_dead_runs
    from resources.journal.progress import progress_of
    from resources.journal.runs import list_runs

    _, journal = obj.open_journal()
    found = list_runs(journal, limit=limit)
    if any(not item.is_terminal for item in found) and reconcile_dead_runs(journal):
        found = list_runs(journal, limit=limit)
    states = progress_of(journal, found)
    return [(item, states[item.id]) for item in found]


@click.command()
@click.option("--limit", type=click.IntRange(1), default=None, help="Newest N only.")
@click.pass_obj
def runs(obj: Ctx, limit: int | None) -> None:
    """List runs, newest first."""
    from cli.run_views import run_view
    from resources.journal.overview import ended_runs

    found = ended_runs(obj.open_store(), limit)
    if found is None:
        found = _runs_of_a_live_journal(obj, limit)
    rows = [run_view(item, state) for item, state in found]
    if obj.wants_json:
        emit(rows)
        return
    if not rows:
        say("No runs yet. Start one with `sr-bench run --manifest PLAN`.")
        return
    from cli.run_tables import print_runs

    print_runs(rows)


@click.command()
@click.argument("run_id", metavar="RUN")
@click.pass_obj
def cancel(obj: Ctx, run_id: str) -> None:
    """Ask a run to stop. Calls in flight are ended and recorded within about two seconds."""
    from resources.journal.runs import get_run, request_cancel

    _, journal = obj.open_journal()
    found = get_run(journal, run_id)
    if found.is_terminal:
        raise SrBenchError(f"Run {found.id} has ended already ({found.status}).", code="already_ended")
    request_cancel(journal, found.id)
    if obj.wants_json:
        emit({"run_id": found.id, "status": "cancel_requested"})
    else:
        sys.stdout.write(f"Cancel requested for {found.id}.\n")
