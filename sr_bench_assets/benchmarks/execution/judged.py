"""One subject call per case, then one call to a fixed judge model that compares the reply with the reference."""

from __future__ import annotations

from sr_bench_assets.benchmarks.contract import Case, CaseResult, CaseSession
from sr_bench_assets.benchmarks.execution.single_call import unusable
from sr_bench_assets.benchmarks.grading.judge import Judgement, judge_messages, read_verdict


async def judged_call(case: Case, session: CaseSession) -> CaseResult:
    """Send `case.messages`, have the final text judged against `case.reference["answer"]`.

    An empty reply is not attempted by definition and costs no judge call. A judge that fails or gives no clear
    verdict leaves the case failed as `judge_error`: there is no grade, and none is guessed.
    """
    view = await session.call(case.messages)
    failure = unusable(view)
    if failure is not None:
        return CaseResult(status="failed", failure=failure, diagnostics={"finish_reason": view.finish_reason})
    judged = bool(view.final.strip())
    judgement = await _judge(case, session, view.final) if judged else Judgement("not_attempted", None)
    if judgement.verdict is None:
        return CaseResult(
            status="failed",
            answer=view.final,
            failure="judge_error",
            diagnostics={"finish_reason": view.finish_reason, "judge_error": judgement.error},
        )
    correct = judgement.verdict == "correct"
    return CaseResult(
        status="completed",
        answer=view.final,
        correct=correct,
        score=float(correct),
        diagnostics={
            "finish_reason": view.finish_reason,
            "verdict": judgement.verdict,
            "judged_by": "judge" if judged else "empty reply",
        },
    )


async def _judge(case: Case, session: CaseSession, reply: str) -> Judgement:
    messages = judge_messages(case.input["question"], case.reference["answer"], reply)
    view = await session.call(messages, role="judge")
    failure = unusable(view)
    if failure is not None:
        return Judgement(None, f"the judge's call ended as {failure}")
    return read_verdict(view.final)
