"""`show`: one run's progress, results, calls and events, in pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from cli.output import Ctx, emit
from resources.errors import NotFound, SrBenchError

if TYPE_CHECKING:
    from resources.journal.connection import Journal
    from resources.journal.runs import Run
    from resources.store import Store


@click.command()
@click.argument("run_id", metavar="RUN")
@click.option("--results", "what", flag_value="results", help="How each cell ended.")
@click.option("--calls", "what", flag_value="calls", help="Every call with its derived record.")
@click.option("--active", "what", flag_value="active", help="Calls in flight.")
@click.option("--events", "what", flag_value="events", help="The run's log.")
@click.option("--after", type=click.IntRange(0), default=0, help="Page on: the `next` of the page before.")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True)
@click.option("--call-id", help="One call with its request digest and evidence address.")
@click.pass_obj
def show(obj: Ctx, run_id: str, what: str | None, after: int, limit: int, call_id: str | None) -> None:
    """Show one run."""
    from resources.journal.runs import get_run

    store, journal = obj.open_journal()
    found = get_run(journal, run_id)
    if not found.is_terminal:
        from resources.journal.leases import reconcile_dead_runs

        if reconcile_dead_runs(journal):
            found = get_run(journal, found.id)
    if call_id and what:
        raise SrBenchError("--call-id stands alone.", field="--call-id", mend=f"Leave out --{what}.")
    page = _page(store, journal, found, what, after, limit, call_id)
    if obj.wants_json:
        emit(page)
        return
    from cli.run_tables import print_page

    print_page(page)


def _page(
    store: Store,
    journal: Journal,
    run: Run,
    what: str | None,
    after: int,
    limit: int,
    call_id: str | None,
) -> dict[str, Any]:
    from cli.run_views import call_view, event_view, progress_rows, result_view, run_view
    from resources.journal.calls import get_call, list_calls
    from resources.journal.progress import progress
    from resources.journal.results import list_results
    from resources.journal.runs import list_events

    if call_id:
        call = get_call(journal, call_id)
        if call.run_id != run.id:
            raise NotFound(f"Call {call_id} does not belong to run {run.id}.", field="--call-id")
        return {"call": call_view(call)}
    if what == "results":
        rows = list_results(journal, run.id, after=after or None, limit=limit + 1)
        return _paged("results", rows, limit, result_view)
    if what == "calls":
        calls = list_calls(journal, run.id, after=after or None, limit=limit + 1)
        return _paged("calls", calls, limit, call_view)
    if what == "active":
        active = list_calls(journal, run.id, after=after or None, limit=limit + 1, active=True)
        return _paged("calls", active, limit, call_view)
    if what == "events":
        events = list_events(journal, run.id, after=after or None, limit=limit + 1)
        return _paged("events", events, limit, event_view)
    return {
        **run_view(run, progress(journal, run.id)),
        "by_benchmark_and_target": progress_rows(journal, run.id),
        **_reconciled(store, journal, run),
    }


def _reconciled(store: Store, journal: Journal, run: Run) -> dict[str, Any]:
    """What usage reconciliation made of the costs above, once it was done: reports count with these figures."""
    from resources.journal.seals import list_seals

    partitions = {seal.partition for seal in list_seals(journal, run.id, kind="accounting")}
    if not partitions:
        return {}
    from sr_bench_assets.usage.ledger import load_ledgers, summary

    found = summary(load_ledgers(store, journal, run.id, sorted(partitions)))
    counts = found["counts"]
    return {
        "usage_reconciliation": {
            "known_cost_usd": found["new_known_cost_usd"],
            "before": found["old_known_cost_usd"],
            **{name: counts[name] for name in ("verified", "corrected", "unknown", "changed")},
        }
    }


def _paged(name: str, rows: list[Any], limit: int, view: Any) -> dict[str, Any]:
    """At most `limit` rows; `next` is the --after of the following page, null on the last."""
    page = rows[:limit]
    more = len(rows) > limit
    return {name: [view(row) for row in page], "next": _position(page[-1]) if more else None}


def _position(row: Any) -> int:
    return row.id if hasattr(row, "kind") else row.seq
