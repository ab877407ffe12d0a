from __future__ import annotations

import threading
from decimal import Decimal
from typing import Any

import pytest

from resources.errors import NotFound, SrBenchError
from resources.journal.connection import Journal
from resources.journal.leases import acquire_lease
from resources.journal.runs import (
    Run,
    add_event,
    claimed_cells,
    create_run,
    finish_run,
    get_run,
    list_events,
    list_runs,
    request_cancel,
    start_run,
)

from .conftest import NewRun

REQUEST: dict[str, Any] = {
    "plan_sha256": "a" * 64,
    "name": "nightly",
    "mode": "live",
    "profile": "smoke",
    "total_cells": 4,
    "budget_usd": Decimal("0.1"),
}


def test_a_new_run_is_queued_with_its_exact_budget(journal: Journal) -> None:
    run, created = create_run(journal, **REQUEST)
    assert created
    assert (run.status, run.budget_usd, run.spent_usd, run.scope) == ("queued", Decimal("0.1"), 0, None)
    assert get_run(journal, run.id) == run
    assert get_run(journal, run.id[:7]) == run


def test_a_repeated_key_gives_the_same_run_and_another_plan_is_refused(journal: Journal) -> None:
    first, created = create_run(journal, **REQUEST, idempotency_key="k")
    again, created_again = create_run(journal, **REQUEST, idempotency_key="k")
    assert (created, created_again) == (True, False)
    assert again == first
    with pytest.raises(SrBenchError, match="another plan_sha256") as caught:
        create_run(journal, **{**REQUEST, "plan_sha256": "b" * 64}, idempotency_key="k")
    assert caught.value.field == "idempotency_key"
    assert len(list_runs(journal)) == 1


def test_runs_without_a_key_are_always_new(journal: Journal) -> None:
    assert create_run(journal, **REQUEST)[0].id != create_run(journal, **REQUEST)[0].id
    assert len(list_runs(journal, plan_sha256="a" * 64)) == 2
    assert list_runs(journal, statuses=["running"]) == []


def test_simultaneous_submissions_with_one_key_make_one_run(journal: Journal) -> None:
    barrier = threading.Barrier(8)
    made: list[tuple[Run, bool]] = []

    def submit() -> None:
        barrier.wait()
        made.append(create_run(journal, **REQUEST, idempotency_key="once"))

    threads = [threading.Thread(target=submit) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 8
    assert len({run.id for run, _ in made}) == 1
    assert sum(created for _, created in made) == 1


def test_a_cell_of_a_parent_belongs_to_one_child_only(journal: Journal) -> None:
    parent, _ = create_run(journal, **REQUEST)
    cells = [("mmlu-pro/1", "t"), ("mmlu-pro/2", "t")]
    child, _ = create_run(
        journal, **REQUEST, parent_run_id=parent.id, recovery_mode="undispatched", scope=cells, claims=cells
    )
    assert child.scope == tuple(cells)
    assert claimed_cells(journal, parent.id) == dict.fromkeys(cells, child.id)
    with pytest.raises(SrBenchError, match="1 of 2 cells") as caught:
        create_run(journal, **REQUEST, parent_run_id=parent.id, claims=[cells[1], ("mmlu-pro/3", "t")])
    assert caught.value.code == "already_claimed"
    assert len(list_runs(journal)) == 2
    assert [run.id for run in list_runs(journal, parent_run_id=parent.id)] == [child.id]


def test_a_child_of_nobody_is_refused(journal: Journal) -> None:
    with pytest.raises(NotFound, match="no run 'nobody'"):
        create_run(journal, **REQUEST, parent_run_id="nobody")


def test_a_run_starts_once_and_ends_once(journal: Journal) -> None:
    run, _ = create_run(journal, **REQUEST)
    started = start_run(journal, run.id)
    assert start_run(journal, run.id).started_at == started.started_at
    ended = finish_run(journal, run.id, "partial", "circuit breaker")
    assert (ended.status, ended.reason, ended.is_terminal) == ("partial", "circuit breaker", True)
    assert finish_run(journal, run.id, "completed").status == "partial"
    with pytest.raises(SrBenchError, match="has ended as partial"):
        start_run(journal, run.id)
    assert [event.kind for event in list_events(journal, run.id)] == ["ended"]
    with pytest.raises(ValueError, match="no end"):
        finish_run(journal, run.id, "running")


def test_ending_a_run_gives_back_its_leases(journal: Journal, new_run: NewRun) -> None:
    run = new_run()
    finish_run(journal, run.id, "completed")
    with pytest.raises(SrBenchError, match="has ended"):
        acquire_lease(journal, run.id, "mmlu-pro")


def test_cancelling_asks_a_runner_and_ends_what_nobody_runs(journal: Journal, new_run: NewRun) -> None:
    taken = new_run()
    asked = request_cancel(journal, taken.id)
    assert asked.status == "running"
    assert asked.cancel_requested_at is not None
    assert request_cancel(journal, taken.id).cancel_requested_at == asked.cancel_requested_at
    waiting, _ = create_run(journal, **REQUEST)
    assert request_cancel(journal, waiting.id).status == "cancelled"
    ended = finish_run(journal, taken.id, "cancelled")
    assert request_cancel(journal, ended.id) == ended


def test_unknown_and_ambiguous_ids_are_told(journal: Journal) -> None:
    with pytest.raises(NotFound, match="no run 'zz'"):
        get_run(journal, "zz")
    with pytest.raises(NotFound):
        get_run(journal, "%")
    with pytest.raises(NotFound):
        get_run(journal, "")
    for _ in range(17):  # more runs than hex digits: two ids share their first
        create_run(journal, **REQUEST)
    firsts = [run.id[0] for run in list_runs(journal)]
    shared = next(first for first in firsts if firsts.count(first) > 1)
    with pytest.raises(SrBenchError, match="fits several runs"):
        get_run(journal, shared)


def test_events_page_in_order(journal: Journal) -> None:
    run, _ = create_run(journal, **REQUEST)
    for number in range(5):
        add_event(journal, run.id, "note", f"number {number}", {"number": number})
    first = list_events(journal, run.id, limit=2)
    rest = list_events(journal, run.id, after=first[-1].id)
    assert [event.data for event in first + rest] == [{"number": number} for number in range(5)]


def test_a_budget_beyond_the_counter_is_refused(journal: Journal) -> None:
    with pytest.raises(SrBenchError, match="more than the journal can count"):
        create_run(journal, **{**REQUEST, "budget_usd": Decimal(10**8)})
