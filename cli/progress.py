"""Following a run until it ends: a live bar per benchmark and target, or plain lines."""

from __future__ import annotations

import time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from cli.output import plain_terminal, say, stderr_console
from resources.journal.connection import Journal
from resources.journal.leases import reconcile_dead_runs
from resources.journal.runs import Run, get_run, progress_by
from resources.store import Store

if TYPE_CHECKING:
    from rich.progress import Progress as Bars

POLL_S = 0.2
PLAIN_LINE_EVERY_S = 5.0
DEAD_RUNNER_CHECK_EVERY_S = 5.0


def follow(store: Store, journal: Journal, run_id: str) -> Run:
    """Wait for `run_id` to end and return it; shows progress on stderr meanwhile."""
    say(f"Run {run_id} (stop it with `sr-bench cancel {run_id}`; Ctrl-C ends only this wait)")
    if plain_terminal():
        return _follow_plain(journal, run_id)
    return _follow_bars(journal, run_id)


def _states(journal: Journal, run_id: str) -> dict[tuple[str, str], Any]:
    return progress_by(journal, run_id)


def _plain_line(states: dict[tuple[str, str], Any]) -> str:
    done = sum(state.completed for state in states.values())
    failed = sum(state.failed for state in states.values())
    running = sum(state.running for state in states.values())
    spend = sum((Decimal(state.known_cost_usd or 0) for state in states.values()), Decimal(0))
    return f"{done} done, {failed} failed, {running} running, {spend:.4f} USD known"


def _follow_plain(journal: Journal, run_id: str) -> Run:
    shown_at = checked_at = time.monotonic()
    while not (run := get_run(journal, run_id)).terminal:
        now = time.monotonic()
        if now - shown_at >= PLAIN_LINE_EVERY_S:
            say(_plain_line(_states(journal, run_id)))
            shown_at = now
        if now - checked_at >= DEAD_RUNNER_CHECK_EVERY_S:
            reconcile_dead_runs(journal)
            checked_at = now
        time.sleep(POLL_S)
    say(f"{run.status}: {_plain_line(_states(journal, run_id))}")
    return run


def _follow_bars(journal: Journal, run_id: str) -> Run:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    checked_at = time.monotonic()
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}"),
        TimeRemainingColumn(),
        console=stderr_console(),
    ) as bars:
        tasks: dict[tuple[str, str], Any] = {}
        while not (run := get_run(journal, run_id)).terminal:
            _update(bars, tasks, _states(journal, run_id))
            if time.monotonic() - checked_at >= DEAD_RUNNER_CHECK_EVERY_S:
                reconcile_dead_runs(journal)
                checked_at = time.monotonic()
            time.sleep(POLL_S)
        _update(bars, tasks, _states(journal, run_id))
    return run


def _update(bars: Bars, tasks: dict[tuple[str, str], Any], states: dict[tuple[str, str], Any]) -> None:
    for key, state in states.items():
        if key not in tasks:
            tasks[key] = bars.add_task(" · ".join(key), total=state.total or None, note="")
        spend = f" {Decimal(state.known_cost_usd):.4f} USD" if state.known_cost_usd is not None else ""
        failed = f"[red]{state.failed} failed[/red]" if state.failed else ""
        bars.update(tasks[key], completed=state.completed + state.failed, note=f"{failed}{spend}")
