"""The visible answer in a text that may hold think blocks."""

from __future__ import annotations

import re

_OPEN = "<think>"
_CLOSE = "</think>"
_BLOCK = re.compile(f"{_OPEN}.*?{_CLOSE}", re.DOTALL)


def final_answer(text: str) -> str:
    """`text` without its think blocks, white space trimmed.

    A closing tag without an opening one: what follows the last such tag. An opening tag that is never closed:
    the empty string, since the answer never came.
    """
    if "think>" not in text:
        return text.strip()
    rest = _BLOCK.sub("", text)
    rest = rest.rpartition(_CLOSE)[2]
    return "" if _OPEN in rest else rest.strip()
