"""The one prompt of all multiple-choice benchmarks, so that a difference between them is never the wording."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_uppercase
from typing import Any

CHOICE_PROMPT_VERSION = "choice-prompt-1"


def choice_messages(subject: str, question: str, options: Sequence[str]) -> list[dict[str, Any]]:
    """Chat messages that ask for one letter: a single user message, because some models take no system message."""
    letters = ascii_uppercase[: len(options)]
    listed = "\n".join(f"{letter}. {option}" for letter, option in zip(letters, options, strict=True))
    text = (
        f"Here is a multiple-choice question about {subject}. Exactly one of the options is right.\n\n"
        f"{question}\n\n{listed}\n\n"
        "You may reason first. Finish with one line that holds nothing but `Answer: X`, "
        f"where X is the letter of your choice ({letters[0]}-{letters[-1]})."
    )
    return [{"role": "user", "content": text}]
