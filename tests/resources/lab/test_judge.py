"""The simulated judge on the very messages that the judge grader sends."""

from __future__ import annotations

from resources.lab.config import parse_config
from resources.lab.gateway import Lab
from resources.lab.judge import true_verdict
from sr_bench_assets.benchmarks.grading.judge import judge_messages, read_verdict


def verdicts(agreement: float, reply: str, count: int) -> list[str | None]:
    lab = Lab(parse_config({"models": {"lab-judge": {"judge_agreement": agreement}}}))
    asked = [judge_messages(f"Question {n}?", "Oslo", reply) for n in range(count)]
    texts = [
        lab.answer({"model": "lab-judge", "messages": messages}, None, {}, None).execution.reply.text
        for messages in asked
    ]
    return [read_verdict(text).verdict for text in texts]


def test_a_faithful_judge() -> None:
    assert verdicts(1, "Some words.\n\nAnswer: Oslo", 5) == ["correct"] * 5
    assert verdicts(1, "Some words.\n\nAnswer: Bergen", 5) == ["incorrect"] * 5


def test_agreement_is_a_share() -> None:
    given = verdicts(0.7, "Answer: Oslo", 400)
    assert 0.62 < given.count("correct") / 400 < 0.78
    assert set(given) == {"correct", "incorrect", "not_attempted"}


def test_bare_and_missing_answers() -> None:
    assert true_verdict("7", "7") == "correct"
    assert true_verdict("7", "17") == "incorrect"
    assert true_verdict("7", "Simulated: words. No option can be chosen here.") == "not_attempted"
    assert true_verdict("7", " ") == "not_attempted"


def test_a_request_without_a_task_gets_no_verdict() -> None:
    lab = Lab(parse_config({"models": {"lab-judge": {"judge_agreement": 1}}}))
    body = {"model": "lab-judge", "messages": [{"role": "user", "content": "[1]"}]}
    assert read_verdict(lab.answer(body, None, {}, None).execution.reply.text).verdict is None
