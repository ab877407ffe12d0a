"""A simulated judge: compares a reply with the reference answer that the request itself brings."""

from __future__ import annotations

import json
import random
from typing import Any

from resources.lab.faults import draw
from resources.lab.models import NO_ANSWER, NOT_PREPARED, Reply

VERDICTS = ("correct", "incorrect", "not_attempted")


def judge(seed: int, name: str, agreement: float, question: str) -> Reply:
    """The verdict on `question`, a JSON object with reference_answer and reply; right in a share of `agreement`.

    A text of another form gets a sentence without a verdict.
    """
    try:
        task: Any = json.loads(question)
        reference, reply = str(task["reference_answer"]), str(task["reply"])
    except (ValueError, KeyError, TypeError):
        return Reply(
            f"This is {name}, a simulated judge; the request holds no reply to judge.", "", "unknown"
        )
    verdict = true_verdict(reference, reply)
    if draw("judge", seed, name, question) >= agreement:
        others = [other for other in VERDICTS if other != verdict]
        verdict = random.Random(f"{seed}/{name}/{question}").choice(others)
    return Reply(json.dumps({"verdict": verdict}), "", "known")


def true_verdict(reference: str, reply: str) -> str:
    """The verdict on a reply of a lab model: its last line is the answer, alone or after `Answer:`."""
    if NO_ANSWER in reply or NOT_PREPARED in reply or not reply.strip():
        return "not_attempted"
    given = reply.strip().removeprefix("Answer:").rpartition("\n\nAnswer:")[2]
    return "correct" if given.strip() == reference.strip() else "incorrect"
