"""JSON as gateways send it: strict grammar, with broken UTF-8 and lone surrogates replaced and told."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, NoReturn, cast

import orjson

_SURROGATE = re.compile("[\ud800-\udfff]")
_TOKEN = re.compile(rb'\\.|["{}\[\]]', re.DOTALL)
_LONGEST_INTEGER = 4000
"""Digits; Python converts no longer ones, and nothing that counts is as long."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """A JSON value and what had to be replaced by U+FFFD to read it."""

    value: Any
    invalid_utf8: bool = False
    """Bytes that are not UTF-8, one U+FFFD for each maximal invalid part as in the WHATWG decoder."""
    lone_surrogate: bool = False
    """An escaped half of a surrogate pair without its other half."""


def decode_json(payload: bytes) -> Decoded:
    """Decode one JSON text (RFC 8259; NaN and Infinity are malformed). Raises ValueError when malformed."""
    try:
        return Decoded(orjson.loads(payload))
    except orjson.JSONDecodeError:
        pass
    invalid_utf8 = False
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        # Python replaces as the WHATWG decoder does: one mark for each maximal part of an invalid sequence.
        text = payload.decode(errors="replace")
        invalid_utf8 = True
    try:
        value: Any = json.loads(text, parse_constant=_no_constant, parse_int=_integer)
        cleaned, lone = _without_surrogates(value)
    except RecursionError as error:
        raise ValueError("JSON nested too deeply") from error
    return Decoded(cleaned, invalid_utf8, lone)


def json_text(value: Any) -> str:
    """JSON text of a decoded value, whatever its depth and the size of its numbers."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # integers beyond 64 bits, lone surrogates, deep nesting
        try:
            return json.dumps(value, separators=(",", ":"))
        except (RecursionError, ValueError):
            return '"(nested too deeply)"'


def is_cut_json(payload: bytes) -> bool:
    """Whether malformed JSON looks like the beginning of a longer text: a string or bracket is still open."""
    in_string = False
    depth = 0
    for token in _TOKEN.finditer(payload):
        found = token[0]
        if in_string:
            in_string = found != b'"'
        elif found[-1:] == b'"':  # outside a string a backslash escapes nothing
            in_string = True
        else:
            depth += {b"{": 1, b"[": 1, b"}": -1, b"]": -1}.get(found[-1:], 0)
    return in_string or depth > 0


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= _LONGEST_INTEGER else float(digits)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _without_surrogates(value: Any) -> tuple[Any, bool]:
    """`value` with every lone surrogate replaced, and whether there was one."""
    if isinstance(value, str):
        cleaned, count = _SURROGATE.subn("\ufffd", value)
        return cleaned, count > 0
    if isinstance(value, list):
        items = [_without_surrogates(item) for item in cast("list[Any]", value)]
        return [item for item, _ in items], any(lone for _, lone in items)
    if isinstance(value, dict):
        found = False
        members: dict[str, Any] = {}
        for name, member in cast("dict[str, Any]", value).items():
            clean_name, name_lone = _without_surrogates(name)
            members[clean_name], member_lone = _without_surrogates(member)
            found = found or name_lone or member_lone
        return members, found
    return value, False
