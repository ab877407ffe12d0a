"""Recovery: which cells are eligible, and the child run that takes them over."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.errors import NotFound, Problems, SrBenchError
from resources.journal.calls import CallEnd, Dispatch
from resources.journal.cells import CallBrief, ResultBrief
from resources.journal.connection import Journal, open_journal
from resources.journal.results import ResultRow
from resources.journal.runs import Cell, Run, create_run, finish_run, get_run, start_run
from resources.journal.verdicts import Granted
from resources.journal.writer import JournalWriter
from resources.store import Store
from sr_bench_assets.plans.freeze import frozen_from
from sr_bench_assets.plans.manifest import FrozenPlan
from sr_bench_assets.results.recovery import CellRef, Mode, RecoveryPlan, classify, recover, recovery_plan
from tests.planning import manifest_document, publish_cases, single

CASES = 8
TARGET = "single-a"


@dataclass(frozen=True)
class Sent:
    """One call to journal, and how it ended; `outcome` None leaves it without an end."""

    outcome: Literal["completed", "failed", "refused"] | None
    spent_pico: int | None = None
    failure: str | None = None
    http_status: int | None = 200


PAID = Sent("completed", 10)
History = Sequence[tuple[Sequence[Sent], Literal["completed", "failed", "ambiguous"] | None]]

HISTORY: History = [
    ((PAID,), "completed"),
    ((Sent("failed", 10, "length"),), "failed"),
    ((Sent("failed", None, "stalled"),), "failed"),
    ((Sent("failed", None, "http_error", 401),), "failed"),
    ((Sent("failed", None, "connect_error", None),), "failed"),
    ((Sent(None),), "ambiguous"),
    ((Sent("refused", 0, None, 429),), None),
    ((), None),
]
"""The cells 0 to 7."""


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.delenv("SR_BENCH_DATABASE_URL", raising=False)
    return Store.open(tmp_path / "store")


@pytest.fixture
def journal(store: Store) -> Iterator[Journal]:
    opened = open_journal(store)
    yield opened
    opened.close()


@pytest.fixture
def plan(store: Store, tmp_path: Path) -> FrozenPlan:
    file = tmp_path / "m.json"
    document = manifest_document(publish_cases(store, CASES), targets=[single()])
    file.write_text(json.dumps(document))
    return frozen_from(file, store, {})


NewRun = Callable[..., Run]


@pytest.fixture
def new_run(store: Store, journal: Journal, plan: FrozenPlan) -> NewRun:
    """A run with a history: cell by cell its calls and its result."""

    def make(history: History = HISTORY, *, ended: bool = True) -> Run:
        run, _ = create_run(
            journal,
            plan_sha256=plan.plan_sha256,
            name=plan.name,
            mode=plan.mode,
            profile=plan.profile,
            total_cells=CASES,
            budget_usd=plan.limits.max_cost_usd,
        )
        start_run(journal, run.id)
        asyncio.run(_play(journal, store, run, history))
        return finish_run(journal, run.id, "partial") if ended else get_run(journal, run.id)

    return make


async def _play(journal: Journal, store: Store, run: Run, history: History) -> None:
    writer = JournalWriter(journal, run.id, store.evidence_dir(run.id))
    try:
        for number, (calls, status) in enumerate(history):
            case_id = f"mmlu-pro/{number}"
            for attempt, sent in enumerate(calls):
                dispatch = Dispatch(
                    "mmlu-pro",
                    case_id,
                    TARGET,
                    "subject",
                    0,
                    attempt,
                    request_sha256="0" * 64,
                    reserved_pico=100,
                )
                assert isinstance(await writer.dispatch(dispatch), Granted)
                if sent.outcome is not None:
                    await writer.finish(
                        CallEnd(
                            dispatch.call_id,
                            "mmlu-pro",
                            sent.outcome,
                            sent.spent_pico,
                            failure=sent.failure,
                            http_status=sent.http_status,
                        )
                    )
            if status is not None:
                failure = calls[-1].failure if status == "failed" else None
                await writer.result(
                    ResultRow(case_id, TARGET, "mmlu-pro", status, failure=failure, call_count=len(calls))
                )
    finally:
        writer.close()


def _numbers(cells: Sequence[CellRef]) -> list[int]:
    return [int(cell.case_id.removeprefix("mmlu-pro/")) for cell in cells]


def _choose(recovery: RecoveryPlan, *numbers: int) -> RecoveryPlan:
    cells = [CellRef(case_id=f"mmlu-pro/{number}", target_id=TARGET) for number in numbers]
    return recovery.model_copy(update={"selected_cells": cells})


def test_undispatched_cells(store: Store, journal: Journal, new_run: NewRun) -> None:
    recovery = recovery_plan(store, journal, new_run().id, "undispatched")
    assert _numbers(recovery.eligible) == [6, 7]
    reasons = dict(zip(_numbers(recovery.excluded), (cell.reason for cell in recovery.excluded), strict=True))
    assert reasons == {0: "completed", 1: "failed", 2: "failed", 3: "failed", 4: "failed", 5: "ambiguous"}
    assert recovery.counts == {"eligible": 2, "ambiguous": 1, "completed": 1, "failed": 4}
    assert sum(recovery.counts.values()) == CASES


def test_failed_cells_of_known_billing(store: Store, journal: Journal, new_run: NewRun) -> None:
    recovery = recovery_plan(store, journal, new_run().id, "failed")
    assert [(cell.case_id[-1], cell.failure) for cell in recovery.eligible] == [
        ("1", "length"),
        ("3", "http_error"),
        ("4", "connect_error"),
    ]
    reasons = dict(zip(_numbers(recovery.excluded), (cell.reason for cell in recovery.excluded), strict=True))
    assert reasons == {
        0: "completed",
        2: "unknown_billing",
        5: "ambiguous",
        6: "undispatched",
        7: "undispatched",
    }


def test_a_call_without_an_end_makes_even_a_failed_cell_ambiguous() -> None:
    calls = {
        ("c", "t"): [CallBrief("completed", None, 200, True, True), CallBrief(None, None, None, False, False)]
    }
    results = {("c", "t"): ResultBrief("b", "failed", "case_timeout")}
    eligible, excluded = classify([("b", ("c", "t"))], calls, results, {}, "failed", unpriced_allowed=False)
    assert (eligible, [cell.reason for cell in excluded]) == ([], ["ambiguous"])


def test_known_usage_is_enough_where_the_plan_allows_unknown_prices() -> None:
    calls = {("c", "t"): [CallBrief("failed", "length", 200, False, True)]}
    results = {("c", "t"): ResultBrief("b", "failed", "length")}
    for allowed in (True, False):
        eligible, _ = classify([("b", ("c", "t"))], calls, results, {}, "failed", unpriced_allowed=allowed)
        assert bool(eligible) is allowed


briefs = st.builds(
    CallBrief,
    st.sampled_from(["completed", "failed", "refused", None]),
    st.sampled_from([None, "length", "connect_error", "stalled"]),
    st.sampled_from([None, 200, 401, 429, 500]),
    st.booleans(),
    st.booleans(),
)
cell_states = st.tuples(
    st.lists(briefs, max_size=3), st.sampled_from(["completed", "failed", "ambiguous", None]), st.booleans()
)


@given(st.lists(cell_states, max_size=8), st.sampled_from(["undispatched", "failed"]), st.booleans())
def test_every_cell_is_in_exactly_one_list_and_none_that_may_have_generated_is_continued(
    states: list[tuple[list[CallBrief], str | None, bool]], mode: Mode, unpriced_allowed: bool
) -> None:
    cells: list[tuple[str, Cell]] = [("b", (str(number), "t")) for number in range(len(states))]
    calls = {cell: state[0] for (_, cell), state in zip(cells, states, strict=True)}
    results = {
        cell: ResultBrief("b", state[1], None)
        for (_, cell), state in zip(cells, states, strict=True)
        if state[1]
    }
    claims = {cell: "child" for (_, cell), state in zip(cells, states, strict=True) if state[2]}
    eligible, excluded = classify(cells, calls, results, claims, mode, unpriced_allowed=unpriced_allowed)
    listed = [(cell.case_id, cell.target_id) for cell in [*eligible, *excluded]]
    assert sorted(listed) == sorted(cell for _, cell in cells)
    for cell in eligible:
        of_cell = calls[cell.case_id, cell.target_id]
        assert (cell.case_id, cell.target_id) not in claims
        assert all(call.outcome is not None for call in of_cell)
        if mode == "undispatched":
            assert all(call.outcome == "refused" for call in of_cell)
        else:
            assert results[cell.case_id, cell.target_id].status == "failed"


def test_the_child_takes_the_eligible_cells_over(
    store: Store, journal: Journal, new_run: NewRun, plan: FrozenPlan
) -> None:
    parent = new_run()
    recovery = recovery_plan(store, journal, parent.id, "undispatched")
    child, created = recover(store, journal, parent.id, recovery, idempotency_key="k", env={})
    assert created
    assert (child.status, child.parent_run_id, child.recovery_mode) == ("queued", parent.id, "undispatched")
    assert child.scope == (("mmlu-pro/6", TARGET), ("mmlu-pro/7", TARGET))
    assert (child.total_cells, child.plan_sha256) == (2, plan.plan_sha256)
    assert get_run(journal, parent.id) == parent
    after = recovery_plan(store, journal, parent.id, "undispatched")
    assert after.eligible == []
    assert {cell.child_run_id for cell in after.excluded if cell.reason == "claimed"} == {child.id}


def test_a_repeated_submission_returns_the_same_child(
    store: Store, journal: Journal, new_run: NewRun
) -> None:
    parent = new_run()
    recovery = recovery_plan(store, journal, parent.id, "undispatched")
    first, _ = recover(store, journal, parent.id, recovery, idempotency_key="k", env={})
    again, created = recover(store, journal, parent.id, recovery, idempotency_key="k", env={})
    assert (again.id, created) == (first.id, False)
    reordered, created = recover(
        store, journal, parent.id, _choose(recovery, 7, 6), idempotency_key="k", env={}
    )
    assert (reordered.id, created) == (first.id, False)
    with pytest.raises(SrBenchError) as caught:
        recover(store, journal, parent.id, _choose(recovery, 7), idempotency_key="k", env={})
    assert caught.value.code == "idempotency_conflict"
    for key in ("other", None):
        with pytest.raises(Problems) as refused:
            recover(store, journal, parent.id, recovery, idempotency_key=key, env={})
        assert {problem.code for problem in refused.value.problems} == {"not_eligible"}


@pytest.mark.parametrize("keys", [("same", "same"), ("one", "two"), (None, None)])
def test_two_simultaneous_submissions_make_one_child(
    store: Store, journal: Journal, new_run: NewRun, keys: tuple[str | None, str | None]
) -> None:
    parent = new_run()
    recovery = recovery_plan(store, journal, parent.id, "undispatched")

    def submit(key: str | None) -> str:
        try:
            return recover(store, journal, parent.id, recovery, idempotency_key=key, env={})[0].id
        except SrBenchError as error:
            return type(error).__name__

    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(submit, keys))
    if keys == ("same", "same"):
        assert answers[0] == answers[1]
    else:
        assert sum(answer in ("Problems", "SrBenchError") for answer in answers) == 1


def test_a_reviewed_subset(store: Store, journal: Journal, new_run: NewRun) -> None:
    parent = new_run()
    recovery = recovery_plan(store, journal, parent.id, "undispatched")
    child, _ = recover(store, journal, parent.id, _choose(recovery, 7), env={})
    assert child.scope == (("mmlu-pro/7", TARGET),)
    assert _numbers(recovery_plan(store, journal, parent.id, "undispatched").eligible) == [6]


def test_retrying_failures_needs_acknowledgement_and_selection(
    store: Store, journal: Journal, new_run: NewRun
) -> None:
    parent = new_run()
    recovery = recovery_plan(store, journal, parent.id, "failed")
    with pytest.raises(SrBenchError) as caught:
        recover(store, journal, parent.id, _choose(recovery, 1), env={})
    assert caught.value.code == "not_acknowledged"
    with pytest.raises(SrBenchError) as caught:
        recover(store, journal, parent.id, recovery, acknowledge_new_attempt=True, env={})
    assert caught.value.code == "nothing_selected"
    with pytest.raises(Problems) as refused:
        recover(
            store, journal, parent.id, _choose(recovery, 1, 2, 5, 99), acknowledge_new_attempt=True, env={}
        )
    assert [problem.field for problem in refused.value.problems] == [
        f"selected_cells[{i}]" for i in (1, 2, 3)
    ]
    child, _ = recover(store, journal, parent.id, _choose(recovery, 1), acknowledge_new_attempt=True, env={})
    assert child.recovery_mode == "failed"


def test_the_child_can_be_recovered_in_turn(store: Store, journal: Journal, new_run: NewRun) -> None:
    parent = new_run()
    child, _ = recover(
        store, journal, parent.id, recovery_plan(store, journal, parent.id, "undispatched"), env={}
    )
    finish_run(journal, child.id, "cancelled")
    recovery = recovery_plan(store, journal, child.id, "undispatched")
    assert _numbers(recovery.eligible) == [6, 7]
    assert recovery.excluded == []
    grandchild, _ = recover(store, journal, child.id, recovery, env={})
    assert grandchild.parent_run_id == child.id


@pytest.mark.parametrize("numbers", [(), (7, 7)])
def test_bad_selections(store: Store, journal: Journal, new_run: NewRun, numbers: tuple[int, ...]) -> None:
    parent = new_run()
    recovery = _choose(recovery_plan(store, journal, parent.id, "undispatched"), *numbers)
    with pytest.raises(SrBenchError) as caught:
        recover(store, journal, parent.id, recovery, env={})
    assert caught.value.field == "selected_cells"


def test_a_plan_of_another_run(store: Store, journal: Journal, new_run: NewRun) -> None:
    one, other = new_run(), new_run()
    with pytest.raises(SrBenchError, match="not for"):
        recover(store, journal, other.id, recovery_plan(store, journal, one.id, "undispatched"), env={})


def test_a_run_that_goes_on_and_one_that_never_was(store: Store, journal: Journal, new_run: NewRun) -> None:
    with pytest.raises(SrBenchError) as caught:
        recovery_plan(store, journal, new_run(ended=False).id, "undispatched")
    assert caught.value.code == "run_active"
    with pytest.raises(NotFound):
        recovery_plan(store, journal, "nobody", "undispatched")


def test_a_changed_dataset_stops_a_recovery(
    store: Store, journal: Journal, new_run: NewRun, plan: FrozenPlan
) -> None:
    parent = new_run()
    recovery: Any = recovery_plan(store, journal, parent.id, "undispatched")
    path = Path(plan.dataset.path)
    path.chmod(0o600)
    path.write_bytes(path.read_bytes().replace(b"What", b"That"))
    with pytest.raises(SrBenchError):
        recover(store, journal, parent.id, recovery, env={})
