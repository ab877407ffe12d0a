"""How one case is run: which calls go out, and what each ending becomes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import pytest

from sr_bench_assets.benchmarks.contract import CallView, Case, CaseResult
from sr_bench_assets.benchmarks.execution.judged import judged_call
from sr_bench_assets.benchmarks.execution.single_call import graded_call
from sr_bench_assets.benchmarks.grading.multiple_choice import grade_choice

CHOICE = Case(
    id="x/1",
    benchmark="x",
    category="all",
    messages=[{"role": "user", "content": "Which?"}],
    input={"question": "Which?", "options": ["p", "q"]},
    reference={"answer": "B"},
)
OPEN = CHOICE.model_copy(update={"reference": {"answer": "Ada"}})


def reply(final: str, **changes: Any) -> CallView:
    view = CallView(
        call_id="c",
        call_status="completed",
        failure=None,
        text=final,
        reasoning="",
        final=final,
        finish_reason="stop",
        output_complete=True,
        tool_calls=(),
        usage={},
        model="m",
    )
    return replace(view, **changes)


@dataclass
class Script:
    """A session that answers from a list and keeps what was sent."""

    replies: list[CallView]
    sent: list[tuple[str, Sequence[Mapping[str, Any]]]] = field(default_factory=list)
    options: Mapping[str, Any] = field(default_factory=dict)

    async def call(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        role: Literal["subject", "judge", "simulator"] = "subject",
        extra: Mapping[str, Any] | None = None,
    ) -> CallView:
        self.sent.append((role, messages))
        return self.replies[len(self.sent) - 1]


def run_choice(view: CallView) -> CaseResult:
    async def case() -> CaseResult:
        return await graded_call(grade_choice)(CHOICE, Script([view]))

    return asyncio.run(case())


def run_judged(*views: CallView) -> tuple[CaseResult, Script]:
    script = Script(list(views))
    return asyncio.run(judged_call(OPEN, script)), script


def test_a_graded_reply_is_a_completed_case() -> None:
    result = run_choice(reply("Answer: B"))
    assert (result.status, result.answer, result.correct, result.score) == ("completed", "B", True, 1.0)
    assert (result.answer_status, result.strict_format) == ("parsed", True)


@pytest.mark.parametrize("final", ["", "no idea", "Answer: A or B", "Answer: A"])
def test_unclear_and_wrong_answers_are_completed_and_not_correct(final: str) -> None:
    result = run_choice(reply(final))
    assert (result.status, result.correct, result.failure) == ("completed", False, None)


@pytest.mark.parametrize(
    ("changes", "failure"),
    [
        ({"finish_reason": "length", "output_complete": False}, "length"),
        ({"finish_reason": "content_filter", "output_complete": False}, "content_filter"),
        ({"call_status": "failed", "failure": "stalled", "output_complete": None}, "stalled"),
    ],
)
def test_a_call_without_a_whole_answer_fails_the_case(changes: dict[str, Any], failure: str) -> None:
    result = run_choice(reply("Answer: B", **changes))
    assert (result.status, result.failure, result.correct) == ("failed", failure, None)
    judged, script = run_judged(reply("Ada", **changes))
    assert (judged.status, judged.failure, judged.correct) == ("failed", failure, None)
    assert [role for role, _ in script.sent] == ["subject"]


def test_a_reply_without_finish_reason_is_graded() -> None:
    assert run_choice(reply("B", finish_reason=None, output_complete=None)).correct is True


@pytest.mark.parametrize(
    ("verdict", "correct"), [("correct", True), ("incorrect", False), ("not_attempted", False)]
)
def test_the_judge_decides(verdict: str, correct: bool) -> None:
    result, script = run_judged(reply("It was Ada."), reply(json.dumps({"verdict": verdict})))
    assert (result.status, result.answer, result.correct) == ("completed", "It was Ada.", correct)
    assert result.diagnostics["verdict"] == verdict
    assert [role for role, _ in script.sent] == ["subject", "judge"]
    assert "Ada" not in json.dumps(script.sent[0][1])


@pytest.mark.parametrize(
    "judge",
    [
        reply("correct"),
        reply("", call_status="failed", failure="http_error", output_complete=None),
        reply('{"verdict": "correct"}', finish_reason="length", output_complete=False),
    ],
)
def test_a_judge_without_a_clear_verdict_is_an_error_and_no_grade(judge: CallView) -> None:
    result, _ = run_judged(reply("It was Ada."), judge)
    assert (result.status, result.failure, result.correct) == ("failed", "judge_error", None)
    assert result.diagnostics["judge_error"]


def test_an_empty_reply_is_not_attempted_and_costs_no_judge_call() -> None:
    result, script = run_judged(reply("  "))
    assert (result.correct, result.diagnostics["verdict"]) == (False, "not_attempted")
    assert len(script.sent) == 1
