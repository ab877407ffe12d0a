"""What a simulated or recorded model says to a case: deterministic by seed, model and case."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from resources.lab.answer_key import KnownCase
from resources.lab.config import AnswerStyle, Behaviour, Model
from resources.lab.faults import draw
from resources.lab.prefix_cache import CHARS_PER_TOKEN, count_tokens

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
PROSE = (
    "first the given terms are set side by side then each option is weighed against what follows from them "
    "while units signs and bounds stay in view some parts cancel others add up one case needs care because "
    "its limit differs next rough estimates narrow choices that remain before exact values decide"
)
WORDS = PROSE.split()
NO_ANSWER = "No option can be chosen here."
NOT_PREPARED = "It knows only prepared questions; this is not one of them."


@dataclass(frozen=True)
class Reply:
    """A simulated reply before it is put on the wire."""

    text: str
    reasoning: str
    knows: str
    """`known`, `unknown` (no such case was prepared) or `unrecorded`; the header `x-sr-bench-lab-case`."""


def competence(model: Model, case: KnownCase) -> float:
    """The probability of a correct answer: that of the category, else of the benchmark, else `default`."""
    table = model.competence
    for name in (case.category, case.benchmark, "default"):
        if name in table:
            return table[name]
    return 0.0


def is_correct(seed: int, name: str, model: Model, case: KnownCase) -> bool:
    """Whether `name` answers `case` correctly. Over many cases the share is its competence; a share of
    `shared_difficulty` is equally hard for all: a stronger model solves these wherever a weaker one does."""
    return _luck(seed, name, model, case) < competence(model, case)


def _luck(seed: int, name: str, model: Model, case: KnownCase) -> float:
    shared = draw("shared", seed, case.id) < model.shared_difficulty
    return draw("luck", seed, case.id) if shared else draw("luck", seed, case.id, name)


def simulate(seed: int, name: str, model: Model, case: KnownCase | None) -> Reply:
    """The reply of simulated model `name` to `case`; without a case it says that it knows no such one."""
    if case is None:
        return compose(seed, name, model, None, None, "unknown")
    luck = _luck(seed, name, model, case)
    skill = competence(model, case)
    if luck < skill:
        answer = right_answer(case)
    elif (luck - skill) < (1 - skill) * model.no_answer:
        answer = None
    else:
        answer = wrong_answer(case, random.Random(f"{seed}/{name}/{case.id}/wrong"))
    return compose(seed, name, model, case, answer, "known")


def right_answer(case: KnownCase) -> Any:
    """The labelled answer: a letter, grids or a text; None for kinds that the lab cannot answer."""
    reference = case.reference
    for field in ("answer", "grids"):
        if reference.get(field) is not None:
            return reference[field]
    return None


def wrong_answer(case: KnownCase, rng: random.Random) -> Any:
    """Another letter of the options; else grids with one other cell; else a text that is not the answer."""
    right = right_answer(case)
    if case.options and isinstance(right, str):
        return rng.choice([letter for letter in LETTERS[: case.options] if letter != right] or [None])
    if isinstance(right, list) and right:
        grids = json.loads(json.dumps(right))
        cell_row = grids[0][0] if isinstance(grids[0][0], list) else grids[0]
        column = rng.randrange(len(cell_row))
        cell_row[column] = (int(cell_row[column]) + rng.randint(1, 9)) % 10
        return grids
    return None if right is None else f"certainly not {rng.choice(WORDS)} {rng.choice(WORDS)}"


def compose(
    seed: int, name: str, behaviour: Behaviour, case: KnownCase | None, answer: Any, knows: str
) -> Reply:
    """Wrap `answer` in the model's style and length."""
    rng = random.Random(f"{seed}/{name}/{case.id if case else ''}/text")
    length = max(1, round(behaviour.output_tokens * rng.uniform(0.5, 1.5)))
    reasoning = prose(rng, behaviour.reasoning_tokens) if behaviour.reasoning_tokens else ""
    if case is None:
        text = f"This is {name}, a simulation. {NOT_PREPARED}"
    elif answer is None:
        text = f"{prose(rng, length)} {NO_ANSWER}"
    else:
        text = styled(behaviour.answer_style, answer, lambda: prose(rng, length))
    return Reply(text, reasoning, knows)


def styled(style: AnswerStyle, answer: Any, filler: Any) -> str:
    """`answer` the way a model of this style writes it; grids and texts only know explained or bare."""
    if isinstance(answer, list):
        bare = json.dumps(answer, separators=(",", ":"))
        return f"{filler()}\n\n{bare}" if style == "explained" else bare
    if len(str(answer)) != 1:
        return f"{filler()}\n\nAnswer: {answer}" if style == "explained" else str(answer)
    forms: dict[AnswerStyle, str] = {
        "explained": "\n\nAnswer: {0}",
        "letter": "{0}",
        "labelled": "Answer: {0}",
        "boxed": "\n\n$\\boxed{{{0}}}$",
        "markdown": "\n\n**Answer:** **{0}**",
        "json": '{{"answer": "{0}"}}',
        "latex": "\n\nThe answer is $\\mathbf{{{0}}}$.",
    }
    form = forms[style].format(answer)
    return filler() + form if form.startswith("\n") else form


def prose(rng: random.Random, tokens: int) -> str:
    """About `tokens` tokens of plain words that name no option and never repeat in a row."""
    words, length = ["Simulated:"], 0
    while length < tokens * CHARS_PER_TOKEN - 10:
        words.append(rng.choice(WORDS))
        length += len(words[-1]) + 1
    return " ".join(words) + "."


def pieces(text: str, tokens_per_event: int) -> Sequence[str]:
    """`text` cut into the parts that are streamed, each of `tokens_per_event` tokens."""
    size = tokens_per_event * CHARS_PER_TOKEN
    return [text[start : start + size] for start in range(0, len(text), size)]


def truncate(reply: Reply, max_tokens: int | None) -> tuple[Reply, str]:
    """`reply` cut to `max_tokens` (reasoning counts first) and its finish reason: stop or length."""
    used = count_tokens(reply.reasoning)
    if max_tokens is None or used + count_tokens(reply.text) <= max_tokens:
        return reply, "stop"
    reasoning = reply.reasoning[: max_tokens * CHARS_PER_TOKEN]
    left = max(0, max_tokens - used) * CHARS_PER_TOKEN
    return Reply(reply.text[:left], reasoning, reply.knows), "length"
