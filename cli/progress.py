"""Following a run until it ends: a live bar per benchmark and target, or plain lines."""

from __future__ import annotations

import subprocess
import time
from decimal import Decimal
from typing import TYPE_CHECKING

from cli.output import plain_terminal, say, stderr_console
from resources.errors import Incomplete
from resources.journal.connection import Journal
from resources.journal.leases import reconcile_dead_runs
from resources.journal.progress import PartProgress, progress_by
from resources.journal.runs import Run, get_run
from resources.store import Store
from sr_bench_assets.plans.plan_store import get_plan
from sr_bench_assets.results.scope import RunScopeCells, partitions_of, planned_count

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

POLL_S = 0.1
PLAIN_LINE_EVERY_S = 5.0
DEAD_RUNNER_CHECK_EVERY_S = 5.0


Parts = dict[tuple[str, str], PartProgress]


def follow(store: Store, journal: Journal, run_id: str, runner: subprocess.Popen[bytes] | None = None) -> Run:
    """Wait for `run_id` to end and return it; shows progress on stderr meanwhile.

    Raises Incomplete when `runner`, the process that was to work on it, ended before it began.
    """
    say(f"Run {run_id} (stop it with `sr-bench cancel {run_id}`; Ctrl-C ends only this wait)")
    totals = _totals(store, get_run(journal, run_id))
    watch = _Watch(journal, run_id, runner)
    if plain_terminal():
        return _follow_plain(journal, watch, sum(totals.values()))
    return _follow_bars(journal, watch, totals)


class _Watch:
    """Asks for the run now and then, and notices when nobody works on it any more."""

    def __init__(self, journal: Journal, run_id: str, runner: subprocess.Popen[bytes] | None) -> None:
        self.run_id = run_id
        self._journal = journal
        self._runner = runner
        self._checked_at = time.monotonic()

    def run(self) -> Run:
        now = time.monotonic()
        if now - self._checked_at >= DEAD_RUNNER_CHECK_EVERY_S:
            reconcile_dead_runs(self._journal)
            self._checked_at = now
        ended = self._runner is not None and self._runner.poll() is not None
        run = get_run(self._journal, self.run_id)
        if ended and run.status == "queued":
            raise Incomplete(
                f"The runner of {self.run_id} ended before it began; nothing was sent.",
                code="runner_ended",
                mend="See runner.log in the store, then submit the plan again (with the same idempotency key).",
            )
        return run


def _totals(store: Store, run: Run) -> dict[tuple[str, str], int]:
    """Planned cells by benchmark and target."""
    plan = get_plan(store, run.plan_sha256)
    scope = RunScopeCells.parse(run.scope)
    counts = {
        (benchmark, target.id): planned_count(plan, scope, benchmark, target.id)
        for benchmark in partitions_of(plan, scope)
        for target in plan.targets
    }
    return {part: count for part, count in counts.items() if count}


def _plain_line(parts: Parts, total: int) -> str:
    done = sum(part.completed for part in parts.values())
    failed = sum(part.failed for part in parts.values())
    running = sum(part.running for part in parts.values())
    spend = sum((part.spent_usd for part in parts.values()), Decimal(0))
    return f"{done + failed} of {total} cells, {failed} failed, {running} running, {spend:.4f} USD known"


def _follow_plain(journal: Journal, watch: _Watch, total: int) -> Run:
    shown_at = time.monotonic()
    while not (run := watch.run()).is_terminal:
        now = time.monotonic()
        if now - shown_at >= PLAIN_LINE_EVERY_S:
            say(_plain_line(progress_by(journal, watch.run_id), total))
            shown_at = now
        time.sleep(POLL_S)
    say(f"{run.status}: {_plain_line(progress_by(journal, watch.run_id), total)}")
    return run


def _follow_bars(journal: Journal, watch: _Watch, totals: dict[tuple[str, str], int]) -> Run:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}"),
        TimeRemainingColumn(),
        console=stderr_console(),
    ) as bars:
        tasks = {
            part: bars.add_task(" · ".join(part), total=total, note="") for part, total in totals.items()
        }
        while not (run := watch.run()).is_terminal:
            _update(bars, tasks, progress_by(journal, watch.run_id))
            time.sleep(POLL_S)
        _update(bars, tasks, progress_by(journal, watch.run_id))
    return run


def _update(bars: Bars, tasks: dict[tuple[str, str], TaskID], parts: Parts) -> None:
    for part, state in parts.items():
        failed = f"[red]{state.failed} failed[/red] " if state.failed else ""
        note = f"{failed}{state.spent_usd:.4f} USD"
        bars.update(tasks[part], completed=state.completed + state.failed, note=note)
