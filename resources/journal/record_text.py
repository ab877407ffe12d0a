"""Text that a database can hold, from what a server or model may send."""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

_BIGINT = 2**63
_LONG_NUMBER = re.compile("[0-9]{19}")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def dump_json(value: Any) -> str:
    """`value` as JSON text. Lone surrogates and integers beyond 64 bits survive too."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return json.dumps(value, separators=(",", ":"))


def load_json(text: str | None) -> Any:
    """The value of JSON text that `dump_json` made; None for None."""
    if text is None:
        return None
    if _LONG_NUMBER.search(text):  # orjson would round it
        return json.loads(text)
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return json.loads(text)


def storable(text: str | None) -> str | None:
    """`text` with what no database stores (NUL, lone surrogates) as U+FFFD. For names, not answers."""
    return text if text is None else _UNSTORABLE.sub("�", text)


def bigint(number: int | None) -> int | None:
    """`number` if a 64-bit column holds it, else None (the full number stands in the usage JSON)."""
    return number if number is not None and -_BIGINT <= number < _BIGINT else None
