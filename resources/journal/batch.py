"""The transaction that journals a batch of dispatches, ends and results, few statements for many rows.

Few statements, because between any two of them the writer thread may wait for the interpreter lock, which a
busy event loop holds. A batch that meets anything unusual (a dispatch or an end that came twice, or late)
raises `Unusual`; `apply_one` then looks at each operation on its own. Both are idempotent by call id and
cell, so that a batch whose commit was not acknowledged can be applied again.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, bindparam, func, select, update

from resources.errors import NotFound
from resources.journal import rates
from resources.journal.calls import CallEnd, Dispatch
from resources.journal.evidence import FramePlace
from resources.journal.results import ResultRow
from resources.journal.runs import LIVE
from resources.journal.schema import calls, results, runs
from resources.journal.statements import end_calls, insert_rows
from resources.journal.verdicts import BudgetExhausted, Duplicate, Granted, RateLimited, Stopped, Verdict


class EndOfCall(NamedTuple):
    """What `CallEnd` comes to in the journal. Plain values only, so that it can cross to another process."""

    call_id: str
    benchmark: str
    spent_pico: int | None
    columns: dict[str, Any]
    """Values for the `calls` table, all but the place of the evidence; `finished_at` 0 is stamped when written."""
    evidence: bytes


class Finish(NamedTuple):
    """The end of a call (with the place of its evidence), of a cell, or of both at once."""

    end: EndOfCall | None
    place: FramePlace | None
    result: dict[str, Any] | None
    """Values for the `results` table; run, `seq` and, where it is 0, `finished_at` are stamped when written."""


def finish(end: CallEnd | None, result: ResultRow | None) -> Finish:
    """The operation that journals both. Raises `TypeError` or `ValueError` for values that are no JSON."""
    ended = None
    if end is not None:
        columns = end.columns(0.0)
        ended = EndOfCall(end.call_id, end.benchmark, columns["spent_pico"], columns, end.evidence)
    return Finish(ended, None, None if result is None else result.columns("", 0, 0.0))


Operation = Dispatch | Finish
_MAX_BIGINT = 2**63 - 1

# Built once: putting a statement together costs more than running it.
_run_id = bindparam("run")
_account_query = (
    select(
        runs.c.status,
        runs.c.cancel_requested_at,
        runs.c.budget_pico,
        runs.c.reserved_pico,
        runs.c.spent_pico,
        runs.c.unknown_pico,
    )
    .where(runs.c.id == _run_id)
    .with_for_update(key_share=True)
)
_last_call_query = select(func.coalesce(func.max(calls.c.seq), 0)).where(calls.c.run_id == _run_id)
_last_result_query = select(func.coalesce(func.max(results.c.seq), 0)).where(results.c.run_id == _run_id)
_save_statement = (
    update(runs)
    .where(runs.c.id == _run_id)
    .values(
        reserved_pico=bindparam("reserved"),
        spent_pico=bindparam("spent"),
        unknown_pico=bindparam("unknown"),
        updated_at=bindparam("now"),
    )
)


class Unusual(Exception):
    """The batch met something that needs a look at each operation; it was not applied."""


@dataclass
class _Account:
    """The run's row while its lock is held."""

    stopped: str | None
    budget: int
    reserved: int
    spent: int
    unknown: int

    def settle(self, reserved: int, spent: int | None) -> None:
        self.reserved -= reserved
        if spent is None:
            self.unknown += reserved
        else:
            self.spent += spent

    @property
    def available(self) -> int:
        return self.budget - self.reserved - self.spent - self.unknown


def apply_batch(
    connection: Connection, run_id: str, operations: Sequence[Operation], reserved: Mapping[str, int]
) -> list[Verdict | None]:
    """Apply `operations` and return the verdict of each (None for a `Finish`).

    `reserved` holds the reservation of every call that this process dispatched and has not ended. Raises
    `Unusual` with the transaction to be rolled back.
    """
    account = _lock_account(connection, run_id)
    finishes = [operation for operation in operations if isinstance(operation, Finish)]
    dispatches = [operation for operation in operations if isinstance(operation, Dispatch)]
    now = time.time()
    ends = [finish for finish in finishes if finish.end is not None]
    for finish in ends:
        assert finish.end is not None  # filtered above
        if finish.end.call_id not in reserved:
            raise Unusual
        account.settle(reserved[finish.end.call_id], finish.end.spent_pico)
    if ends:
        _expect(len(ends), end_calls(connection, [_end_values(finish, now) for finish in ends]))
    ended_cells = [finish.result for finish in finishes if finish.result is not None]
    if ended_cells:
        last = _last(connection, _last_result_query, run_id)
        rows = [_result_values(row, run_id, last + n, now) for n, row in enumerate(ended_cells, 1)]
        _expect(len(rows), insert_rows(connection, results, rows))
    verdicts = iter(_judge(connection, run_id, account, dispatches))
    found: list[Verdict | None] = []
    rows = []
    for operation in operations:
        verdict = next(verdicts) if isinstance(operation, Dispatch) else None
        found.append(verdict)
        if isinstance(operation, Dispatch) and isinstance(verdict, Granted):
            rows.append(operation.columns(run_id, verdict.seq, verdict.dispatched_at))
    if rows:
        _expect(len(rows), insert_rows(connection, calls, rows))
    _save_account(connection, run_id, account, now)
    return found


def apply_one(connection: Connection, run_id: str, operation: Operation) -> Verdict | None:
    """Apply one operation, whatever has happened to its call or cell before."""
    account = _lock_account(connection, run_id)
    now = time.time()
    verdict: Verdict | None = None
    if isinstance(operation, Dispatch):
        verdict = _find_dispatched(connection, run_id, operation)
        if verdict is None:
            (verdict,) = _judge(connection, run_id, account, [operation])
            if isinstance(verdict, Granted):
                insert_rows(
                    connection, calls, [operation.columns(run_id, verdict.seq, verdict.dispatched_at)]
                )
    else:
        if operation.end is not None:
            _end_one(connection, account, operation, now)
        if operation.result is not None:
            # A cell ends once: where reconciliation was quicker, its word stands.
            last = _last(connection, _last_result_query, run_id)
            insert_rows(connection, results, [_result_values(operation.result, run_id, last + 1, now)])
    _save_account(connection, run_id, account, now)
    return verdict


def _end_one(connection: Connection, account: _Account, finish: Finish, now: float) -> None:
    end = finish.end
    assert end is not None  # the caller checked
    row = connection.execute(select(calls).where(calls.c.id == end.call_id)).one_or_none()
    if row is None:
        raise NotFound(f"call {end.call_id} was never dispatched", field="call_id")
    if row.outcome is not None:
        return
    if row.failure is None:
        account.settle(row.reserved_pico, end.spent_pico)
    elif end.spent_pico is not None:
        # Its runner was thought dead and the reservation kept as unknown; now the spend is known after all.
        account.unknown -= row.reserved_pico
        account.spent += end.spent_pico
    values = _end_values(finish, now)
    del values["id"]
    connection.execute(update(calls).where(calls.c.id == end.call_id).values(**values))


def _end_values(finish: Finish, now: float) -> dict[str, Any]:
    assert finish.end is not None  # callers filter
    place, columns = finish.place, finish.end.columns
    return {
        "id": finish.end.call_id,
        **columns,
        "finished_at": columns["finished_at"] or now,
        "evidence_segment": place.segment if place else None,
        "evidence_offset": place.offset if place else None,
        "evidence_length": place.length if place else None,
    }


def _result_values(columns: dict[str, Any], run_id: str, seq: int, now: float) -> dict[str, Any]:
    return {**columns, "run_id": run_id, "seq": seq, "finished_at": columns["finished_at"] or now}


def _judge(
    connection: Connection, run_id: str, account: _Account, dispatches: Sequence[Dispatch]
) -> list[Verdict]:
    """Decide on each dispatch in turn; what is granted is charged to `account` and to the rate windows."""
    ceilings = {dispatch.rate.key: dispatch.rate for dispatch in dispatches if dispatch.rate is not None}
    local = now = time.time()
    if ceilings and account.stopped is None:
        now = rates.lock_rates(connection, connection.dialect.name, set(ceilings))
        local = time.time()
    last_call = _last(connection, _last_call_query, run_id) if dispatches else 0
    windows: dict[str, rates.Window] = {}
    waits: dict[tuple[str, rates.Cause], float] = {}
    verdicts: list[Verdict] = []
    for dispatch in dispatches:
        rate = dispatch.rate
        if account.stopped is not None:
            verdicts.append(Stopped(account.stopped))
            continue
        if dispatch.reserved_pico > account.available:
            verdicts.append(BudgetExhausted(dispatch.reserved_pico, account.available, account.reserved))
            continue
        if rate is not None:
            window = windows.get(rate.key)
            if window is None:
                window = windows[rate.key] = rates.read_window(connection, rate, now)
            cause = window.refusal(dispatch, rate)
            if cause is not None:
                until = waits.get((rate.key, cause))
                if until is None:
                    until = rates.free_at(connection, window, dispatch, rate, cause)
                    waits[rate.key, cause] = until
                verdicts.append(RateLimited(local + max(until - now, 0.0), cause))
                continue
            window.count(dispatch)
        account.reserved += dispatch.reserved_pico
        last_call += 1
        verdicts.append(Granted(dispatch.call_id, last_call, now))
    return verdicts


def _find_dispatched(connection: Connection, run_id: str, dispatch: Dispatch) -> Verdict | None:
    own = connection.execute(
        select(calls.c.seq, calls.c.dispatched_at).where(calls.c.id == dispatch.call_id)
    ).one_or_none()
    if own is not None:  # an earlier commit succeeded although its acknowledgement was lost
        return Granted(dispatch.call_id, own.seq, own.dispatched_at)
    other = connection.execute(
        select(calls.c.id).where(
            calls.c.run_id == run_id,
            calls.c.case_id == dispatch.case_id,
            calls.c.target_id == dispatch.target_id,
            calls.c.role == dispatch.role,
            calls.c.step == dispatch.step,
            calls.c.attempt == dispatch.attempt,
        )
    ).scalar()
    return None if other is None else Duplicate(other)


def _lock_account(connection: Connection, run_id: str) -> _Account:
    row = connection.execute(_account_query, {"run": run_id}).one_or_none()
    if row is None:
        raise NotFound(f"no run {run_id!r}", field="run_id", mend="list runs with `sr-bench runs`")
    stopped = None
    if row.status not in LIVE:
        stopped = row.status
    elif row.cancel_requested_at is not None:
        stopped = "cancelled"
    return _Account(stopped, row.budget_pico, row.reserved_pico, row.spent_pico, row.unknown_pico)


def _save_account(connection: Connection, run_id: str, account: _Account, now: float) -> None:
    amounts = {"reserved": account.reserved, "spent": account.spent, "unknown": account.unknown}
    values = {name: min(amount, _MAX_BIGINT) for name, amount in amounts.items()}
    connection.execute(_save_statement, {"run": run_id, **values, "now": now})


def _last(connection: Connection, query: Select[Any], run_id: str) -> int:
    """The last `seq` given out in the run; only looked up after its lock was taken."""
    return int(connection.execute(query, {"run": run_id}).scalar_one())


def _expect(wanted: int, changed: int) -> None:
    if changed != wanted:
        raise Unusual
