"""Reading the one letter that a multiple-choice reply declares. Never a guess: unclear replies stay without a letter.

In order of precedence: the last `\\\\boxed{}` letter, the last explicit declaration, a first or last line that is a
letter form; else unparsed. A deciding place that names several letters is ambiguous.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Literal

from sr_bench_assets.benchmarks.contract import Case, Grade
from sr_bench_assets.benchmarks.grading.choice_declarations import declarations_from_the_end, is_denied
from sr_bench_assets.benchmarks.grading.choice_letters import (
    MARKUP,
    Letter,
    after_marks,
    narrow,
    read_letter,
    read_named,
)

_STRICT = re.compile(r"(?:(?i:answer): )?([A-Z])|\(([A-Z])\)|([A-Z])\.")
_BOXED = re.compile(r"\\boxed\s*\{")
_MAX_BOXED = 200
"""No single letter with its wrappers is longer; bounds the search for the closing brace."""
_FENCE = re.compile(r"[ \t]*```[\w+-]*[ \t]*")
_LINE_PREFIX = re.compile(r"[ \t]*(?:[#>]+[ \t]*)*")
_FULL_STOP_TO_END = re.compile(rf"{MARKUP}*[.)]?{MARKUP}*[ \t]*")
_MARK_AND_TEXT = re.compile(rf"{MARKUP}*[.)]{MARKUP}*(?:[ \t]+|$)")
_TEXT_AFTER_BRACKETS = re.compile(rf"[.)]?{MARKUP}*[ \t]+")


@dataclass(frozen=True, slots=True)
class Choice:
    """What a reply answers: a letter where `status` is parsed, else None."""

    answer: str | None
    status: Literal["parsed", "ambiguous", "unparsed"]
    strict_format: bool
    """The whole trimmed reply is `C`, `(C)`, `C.` or `Answer: C`."""


def read_choice(text: str, options: int) -> Choice:
    """Read the answer to a question with `options` options (lettered from A) from the visible final text."""
    letters = ascii_uppercase[:options]
    narrowed = narrow(text)
    named = (
        _last_boxed(narrowed, letters)
        or _last_declared(narrowed, letters)
        or _first_or_last_line(narrowed, letters)
    )
    if not named:
        return Choice(None, "unparsed", strict_format=False)
    if len(named) > 1:
        return Choice(None, "ambiguous", strict_format=False)
    (answer,) = named
    return Choice(answer, "parsed", _STRICT.fullmatch(text.strip()) is not None)


def grade_choice(case: Case, text: str) -> Grade:
    """Grade a final text against `case.reference["answer"]`; anything but the right letter is not correct."""
    choice = read_choice(text, len(case.input["options"]))
    correct = choice.answer == case.reference["answer"]
    return Grade(
        answer=choice.answer,
        answer_status=choice.status,
        correct=correct,
        strict_format=choice.strict_format,
        score=float(correct),
        reason=None if choice.status == "parsed" else choice.status,
    )


def _last_boxed(text: str, letters: str) -> set[str]:
    last: set[str] = set()
    for opening in _BOXED.finditer(text):
        content = _braced(text, opening.end())
        letter = _only_letter(content)
        if letter and not letter.lower and letter.letter in letters:
            last = {letter.letter}
    return last


def _braced(text: str, start: int) -> str:
    """What stands between the opening brace before `start` and the brace that closes it; empty if that is far."""
    depth = 1
    for place in range(start, min(len(text), start + _MAX_BOXED)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return text[start:place].strip()
    return ""


def _only_letter(content: str) -> Letter | None:
    letter = read_letter(content, 0)
    return letter if letter and not content[after_marks(content, letter.end) :].strip() else None


def _last_declared(text: str, letters: str) -> set[str]:
    for named in declarations_from_the_end(text):
        distinct = set(named.letters)
        if named.several:
            # `both` or `either` with one readable letter still does not single one out.
            return {"both", *distinct}
        if len(distinct) > 1 or distinct <= set(letters):
            return distinct
    return set()


def _first_or_last_line(text: str, letters: str) -> set[str]:
    """The letters of the first and the last line, if these are letter forms; two different ones are ambiguous."""
    lines = [line for line in text.splitlines() if line.strip() and not _FENCE.fullmatch(line)]
    ends = lines if len(lines) < 2 else [lines[0], lines[-1]]
    return {letter for line in ends for letter in _line_letters(line, letters)}


def _line_letters(line: str, letters: str) -> Iterator[str]:
    line = line.rstrip()
    prefix = _LINE_PREFIX.match(line)
    place = prefix.end() if prefix else 0
    letter = read_letter(line, place)
    if letter is None or letter.lower:
        return
    if not _FULL_STOP_TO_END.fullmatch(line, letter.end):
        text_follows = _TEXT_AFTER_BRACKETS if letter.wrapped else _MARK_AND_TEXT
        named = read_named(line, place)
        if named and len(set(named.letters)) > 1 and (letter.wrapped or line[letter.end] == ")"):
            yield from named.letters
            return
        if not text_follows.match(line, letter.end) or is_denied(line, letter.end):
            return
    if letter.letter in letters:
        yield letter.letter
