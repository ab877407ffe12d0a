"""One cell from its turn to its result: executor, deadline, and the row that says how it ended."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from resources.journal.calls import CallEnd
from resources.journal.results import ResultRow
from sr_bench_assets.benchmarks.contract import CaseResult, Executor
from sr_bench_assets.results.case_file import CaseFile
from sr_bench_assets.results.dispatcher import NotDispatched, Slot
from sr_bench_assets.results.lanes import Cell
from sr_bench_assets.results.pacing import Turn
from sr_bench_assets.results.run_calls import RunCalls
from sr_bench_assets.results.session import CellSession


class CellRunner:
    """Runs cells of the run's benchmarks; `run` is the dispatcher's `run_cell`."""

    def __init__(self, cases: CaseFile, executors: Mapping[str, Executor]) -> None:
        self.calls: RunCalls | None = None
        """Set before the first cell runs (the dispatcher in it needs `run` to be made)."""
        self._cases = cases
        self._executors = executors

    async def run(self, cell: Cell, slot: Slot, turn: Turn) -> None:
        """Execute one cell and journal how it ended; returns when that is durable.

        A cell none of whose calls was sent (or all of whose calls were refused) gets no result: it stays
        undispatched. A cancellation ends the cell as failed, by the word it was cancelled with.
        """
        assert self.calls is not None  # see above
        case = self._cases.case(cell.benchmark, cell.case)
        session = CellSession(self.calls, cell.benchmark, case.id, cell.target_id, slot, turn)
        try:
            result = await self._executors[cell.benchmark](case, session)
        except NotDispatched as stop:
            result = CaseResult(status="failed", failure=stop.reason)
        except asyncio.CancelledError as cut:
            # From here on nobody cancels this task any more: the clock stops below, a run is stopped once.
            result = CaseResult(status="failed", failure=str(cut.args[0]) if cut.args else "cancelled")
        except Exception as error:
            result = _fault(error)
        session.leave()
        if not session.accepted:
            self.calls.notices.unsent(cell.target_id, result.failure or "")
        else:
            end = session.take_end()
            commit = self._commit(end, _row(cell, case.id, result, session))
            if end is not None:
                commit.add_done_callback(lambda _: session.settled())
            await commit
        await session.close()

    def _commit(self, end: CallEnd | None, row: ResultRow) -> asyncio.Future[None]:
        assert self.calls is not None  # the cell ran
        try:
            return self.calls.writer.finishing(end, row)
        except (TypeError, ValueError) as error:
            # The executor gave what is no JSON.
            fault = _fault(error)
            row = replace(
                row,
                status="failed",
                answer=None,
                answer_status=fault.answer_status,
                strict_format=None,
                correct=None,
                score=None,
                failure=fault.failure,
                diagnostics=fault.diagnostics,
            )
            return self.calls.writer.finishing(end, row)


def _fault(error: Exception) -> CaseResult:
    """A plug-in's fault costs its case, not the run. Its message might tell a label; its type does not."""
    return CaseResult(
        status="failed", failure="executor_error", diagnostics={"error_type": type(error).__name__}
    )


def _row(cell: Cell, case_id: str, result: CaseResult, session: CellSession) -> ResultRow:
    diagnostics: Mapping[str, Any] = result.diagnostics
    return ResultRow(
        case_id=case_id,
        target_id=cell.target_id,
        benchmark=cell.benchmark,
        status=result.status,
        answer=result.answer,
        answer_status=result.answer_status,
        strict_format=result.strict_format,
        correct=result.correct,
        score=result.score,
        failure=result.failure,
        diagnostics=diagnostics,
        call_count=session.attempts,
        cost_usd=session.cost_usd,
        latency_s=session.latency_s,
    )
