"""One subject call per case, graded by a pure function."""

from __future__ import annotations

from collections.abc import Callable

from sr_bench_assets.benchmarks.contract import CallView, Case, CaseResult, CaseSession, Executor, Grade


def unusable(view: CallView) -> str | None:
    """Why a call gave no answer to grade: its failure, `length` or another incomplete end; None if it gave one."""
    if view.call_status == "failed":
        return view.failure or "failed"
    if view.output_complete is False:
        return view.finish_reason or "output_incomplete"
    return None


def graded_call(grade: Callable[[Case, str], Grade]) -> Executor:
    """An executor that sends `case.messages` once and grades the final text with `grade`."""

    async def execute(case: Case, session: CaseSession) -> CaseResult:
        view = await session.call(case.messages)
        failure = unusable(view)
        if failure is not None:
            return CaseResult(
                status="failed", failure=failure, diagnostics={"finish_reason": view.finish_reason}
            )
        verdict = grade(case, view.final)
        return CaseResult(
            status="completed",
            answer=verdict.answer,
            answer_status=verdict.answer_status,
            strict_format=verdict.strict_format,
            correct=verdict.correct,
            score=verdict.score,
            diagnostics={"finish_reason": view.finish_reason, "reason": verdict.reason},
        )

    return execute
