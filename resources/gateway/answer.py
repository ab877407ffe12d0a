"""The visible answer in a text that may hold think blocks."""

from __future__ import annotations

_OPEN = "<think>"
_CLOSE = "</think>"


def final_answer(text: str) -> str:
    """`text` without its think blocks, white space trimmed.

    A closing tag without an opening one: what follows the last such tag. An opening tag that is never closed:
    the empty string, since the answer never came.
    """
    if "think>" not in text:
        return text.strip()
    # Not by an expression: many opened blocks would each look for an end that is not there.
    kept: list[str] = []
    place = 0
    while (start := text.find(_OPEN, place)) >= 0:
        end = text.find(_CLOSE, start + len(_OPEN))
        if end < 0:
            break
        kept.append(text[place:start])
        place = end + len(_CLOSE)
    rest = "".join(kept) + text[place:]
    rest = rest.rpartition(_CLOSE)[2]
    return "" if _OPEN in rest else rest.strip()
