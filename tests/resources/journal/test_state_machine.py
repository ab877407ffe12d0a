"""Random histories of a run against a simple model: money adds up, and each cell is in exactly one state."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import update

from resources.journal.calls import Dispatch, list_calls
from resources.journal.connection import Journal, open_journal
from resources.journal.leases import acquire_lease, reconcile_dead_runs
from resources.journal.progress import progress, progress_by
from resources.journal.results import list_results
from resources.journal.runs import create_run, get_run, request_cancel, start_run
from resources.journal.schema import run_leases
from resources.journal.verdicts import BudgetExhausted, Duplicate, Granted, Stopped, Verdict
from resources.journal.writer import JournalWriter
from resources.store import DATABASE_ENV, Store
from tests.servers.postgres import PostgresServer

from .examples import a_dispatch, a_result, an_end

BUDGET = 1000
CELLS = 6
Key = tuple[str, int, int]


@dataclass
class Modelled:
    """What the model knows of one call."""

    dispatch: Dispatch
    outcome: str | None = None
    spent: int | None = None
    lost: bool = False


@dataclass
class Model:
    """The journal as it should be."""

    calls: dict[Key, Modelled] = field(default_factory=dict[Key, Modelled])
    results: dict[str, str] = field(default_factory=dict[str, str])
    stopped: str | None = None

    def money(self) -> tuple[int, int, int]:
        """Reserved, spent, unknown."""
        reserved = spent = unknown = 0
        for call in self.calls.values():
            if call.outcome is None and not call.lost:
                reserved += call.dispatch.reserved_pico
            elif call.spent is None:
                unknown += call.dispatch.reserved_pico
            else:
                spent += call.spent
        return reserved, spent, unknown

    def expected(self, dispatch: Dispatch) -> set[type[Verdict]]:
        """A repeated dispatch may be refused for that or for another reason; nothing else is left open."""
        key = (dispatch.case_id, dispatch.step, dispatch.attempt)
        repeated: set[type[Verdict]] = {Duplicate} if key in self.calls else set()
        if self.stopped is not None:
            return {Stopped} | repeated
        if dispatch.reserved_pico > BUDGET - sum(self.money()):
            return {BudgetExhausted} | repeated
        return repeated or {Granted}


class JournalMachine(RuleBasedStateMachine):
    """Groups of operations, cancellations and the runner's death, in any order."""

    def __init__(self, make_store: Callable[[Path], Store]) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="sr-bench-machine-"))
        self.store = make_store(self.folder)
        self.journal: Journal = open_journal(self.store)
        run, _ = create_run(
            self.journal,
            plan_sha256="a" * 64,
            name="machine",
            mode="live",
            profile="smoke",
            total_cells=CELLS,
            budget_usd=Decimal(BUDGET).scaleb(-12),
        )
        self.run_id = run.id
        acquire_lease(self.journal, run.id, "mmlu-pro")
        start_run(self.journal, run.id)
        self.writer = JournalWriter(self.journal, run.id, self.store.evidence_dir(run.id))
        self.model = Model()
        self.loop = asyncio.Runner()

    def together(self, *operations: Any) -> list[Any]:
        """Run coroutines at once, so that the writer commits them in groups of its choice."""

        async def gather() -> list[Any]:
            return list(await asyncio.gather(*operations))

        return self.loop.run(gather())

    @rule(
        asked=st.lists(
            st.tuples(st.integers(0, CELLS - 1), st.integers(0, 1), st.integers(0, 1), st.integers(0, 400)),
            min_size=1,
            max_size=5,
        )
    )
    def dispatch(self, asked: list[tuple[int, int, int, int]]) -> None:
        dispatches = [
            a_dispatch(case, step=step, attempt=attempt, reserved_pico=reserved)
            for case, step, attempt, reserved in asked
        ]
        verdicts = self.together(*(self.writer.dispatch(dispatch) for dispatch in dispatches))
        for dispatch, verdict in zip(dispatches, verdicts, strict=True):
            assert type(verdict) in self.model.expected(dispatch)
            if isinstance(verdict, Granted):
                self.model.calls[dispatch.case_id, dispatch.step, dispatch.attempt] = Modelled(dispatch)

    @precondition(lambda self: any(call.outcome is None for call in self.model.calls.values()))
    @rule(
        data=st.data(),
        outcome=st.sampled_from(["completed", "failed", "refused"]),
        known=st.booleans(),
        ends_cell=st.booleans(),
        again=st.booleans(),
    )
    def finish(
        self,
        data: st.DataObject,
        outcome: Literal["completed", "failed", "refused"],
        known: bool,
        ends_cell: bool,
        again: bool,
    ) -> None:
        open_calls = [call for call in self.model.calls.values() if call.outcome is None]
        call = data.draw(st.sampled_from(open_calls))
        spent = 0 if outcome == "refused" else call.dispatch.reserved_pico // 2 if known else None
        end = an_end(call.dispatch, outcome=outcome, spent_pico=spent)
        status = "completed" if outcome == "completed" else "failed"
        result = a_result(call.dispatch, status=status) if ends_cell and outcome != "refused" else None
        self.together(*(self.writer.finish(end, result) for _ in range(2 if again else 1)))
        call.outcome, call.spent = outcome, spent
        if result is not None:
            self.model.results.setdefault(call.dispatch.case_id, status)

    @rule()
    def cancel(self) -> None:
        request_cancel(self.journal, self.run_id)
        self.model.stopped = self.model.stopped or "cancelled"

    @rule()
    def die(self) -> None:
        with self.journal.begin() as connection:
            connection.execute(update(run_leases).values(pid=2**22 + 1))
        reconcile_dead_runs(self.journal)
        if not get_run(self.journal, self.run_id).is_terminal or self.model.stopped == "dead":
            return
        self.model.stopped = "dead"
        cells: dict[str, list[Modelled]] = {}
        for call in self.model.calls.values():
            cells.setdefault(call.dispatch.case_id, []).append(call)
            call.lost = call.outcome is None
        for case, calls in cells.items():
            sent = [call for call in calls if call.outcome != "refused"]
            if sent:
                state = "ambiguous" if any(call.lost for call in sent) else "failed"
                self.model.results.setdefault(case, state)

    @invariant()
    def money_adds_up(self) -> None:
        run = get_run(self.journal, self.run_id)
        found = tuple(int(amount.scaleb(12)) for amount in (run.reserved_usd, run.spent_usd, run.unknown_usd))
        assert found == self.model.money()
        assert sum(found) <= BUDGET
        parts = progress_by(self.journal, self.run_id)
        assert sum(int(part.spent_usd.scaleb(12)) for part in parts.values()) == found[1]

    @invariant()
    def every_cell_is_in_one_state(self) -> None:
        found = {result.case_id: result.status for result in list_results(self.journal, self.run_id)}
        assert found == self.model.results
        states = progress(self.journal, self.run_id)
        counted = (states.completed, states.failed, states.ambiguous, states.running, states.undispatched)
        assert sum(counted) == states.total == CELLS
        touched = {key[0] for key in self.model.calls} - set(self.model.results)
        assert states.running == (0 if self.model.stopped == "dead" else len(touched))

    @invariant()
    def calls_are_numbered_as_they_came(self) -> None:
        calls = list_calls(self.journal, self.run_id)
        assert [call.seq for call in calls] == sorted({call.seq for call in calls})
        assert {call.id for call in calls} == {call.dispatch.call_id for call in self.model.calls.values()}

    def teardown(self) -> None:
        self.writer.close()
        self.loop.close()
        self.journal.close()
        shutil.rmtree(self.folder)


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def test_any_history_keeps_the_journal_consistent(
    kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    server: PostgresServer | None = (
        request.getfixturevalue("postgres_server") if kind == "postgresql" else None
    )

    def make_store(folder: Path) -> Store:
        if server is not None:
            monkeypatch.setenv(DATABASE_ENV, server.create_database(f"m{secrets.token_hex(8)}"))
        else:
            monkeypatch.delenv(DATABASE_ENV, raising=False)
        return Store.open(folder / "store")

    class MachineHere(JournalMachine):
        def __init__(self) -> None:
            super().__init__(make_store)

    examples = int(os.environ.get("SR_BENCH_MACHINE_EXAMPLES", "20" if server is None else "8"))
    bounds = settings(
        max_examples=examples,
        stateful_step_count=20,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )
    run_state_machine_as_test(MachineHere, settings=bounds)
