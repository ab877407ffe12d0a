"""Reading the answer grids of a puzzle from a reply, and comparing them with the expected ones."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, NoReturn, cast

from sr_bench_assets.benchmarks.contract import Case, Grade

Grid = list[list[int]]

_OPENING_FENCE = re.compile(r"```(?:json)?\s*\Z", re.IGNORECASE)
_BRACKET = re.compile(r"[\[\]]")
_MAX_DIGITS = 20
"""Enough to know that a number is no colour; Python refuses to convert very long ones."""


class GridFault(ValueError):
    """A reply or value that holds no grids; `reason` is one of the vectors' reason names."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class GridReading:
    """The grids a reply ends with, or None and the reason."""

    grids: list[Grid] | None
    reason: str | None


def read_grids(text: str, test_inputs: int) -> GridReading:
    """Read the one JSON array that `text` holds and ends with as a list of grids.

    A bare grid counts as a list of one only where one is asked for (`test_inputs` is 1).
    """
    try:
        return GridReading(_as_grids(_only_array(text), test_inputs), None)
    except GridFault as fault:
        return GridReading(None, fault.reason)


def grade_grids(case: Case, text: str) -> Grade:
    """Grade a final text against `case.reference["grids"]`: correct only if all grids are equal, in order."""
    expected = case.reference["grids"]
    reading = read_grids(text, len(expected))
    correct = reading.grids == expected
    return Grade(
        answer=reading.grids,
        answer_status="unparsed" if reading.grids is None else "parsed",
        correct=correct,
        score=float(correct),
        reason=reading.reason,
    )


def check_grid(value: Any) -> Grid:
    """`value` as one grid: equally long rows of integers 0-9. Raises `GridFault`."""
    return _checked([value])[0]


def _only_array(text: str) -> Any:
    """The value of the only JSON array in `text`, which must end with it (but for a code fence around it)."""
    text = text.strip()
    arrays: list[tuple[Any, int, int]] = []
    place = text.find("[")
    while place >= 0:
        try:
            value, end = _DECODER.raw_decode(text, place)
            arrays.append((value, place, end))
        except (ValueError, RecursionError):
            # Not JSON: prose in brackets, or a broken array. Its inner brackets are no arrays of their own.
            end = _end_of_brackets(text, place)
        place = text.find("[", end)
    if not arrays:
        raise GridFault("no_array")
    value, start, end = arrays[-1]
    after = text[end:].strip()
    if after == "```" and _OPENING_FENCE.search(text[:start]):
        after = ""
    if after:
        raise GridFault("no_array")
    if len(arrays) > 1:
        raise GridFault("several_arrays")
    return value


def _end_of_brackets(text: str, start: int) -> int:
    """The place after the bracket that closes the one at `start`; the end of the text if none does."""
    depth = 0
    for bracket in _BRACKET.finditer(text, start):
        depth += 1 if bracket[0] == "[" else -1
        if depth == 0:
            return bracket.end()
    return len(text)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_int=lambda digits: int(digits[:_MAX_DIGITS]), parse_constant=_no_constant)


def _as_grids(value: list[Any], test_inputs: int) -> list[Grid]:
    if value and all(isinstance(row, list) and not any(map(_is_list, _items(row))) for row in value):
        # Two levels only: one grid. `[[]]` and the like are empty whatever they were meant to be.
        if test_inputs != 1 and all(value):
            raise GridFault("not_grids")
        return _checked([value])
    return _checked(value)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _items(value: Any) -> list[Any]:
    return cast("list[Any]", value)


def _checked(grids: list[Any]) -> list[Grid]:
    """Refuse by the most basic fault first: nesting, emptiness, raggedness, cell type, cell range."""
    rows: list[Any] = []
    for grid in grids:
        if not isinstance(grid, list):
            raise GridFault("not_grids")
        rows.extend(_items(grid))
    if not all(map(_is_list, rows)):
        raise GridFault("not_grids")
    cells = [cell for row in rows for cell in _items(row)]
    if any(map(_is_list, cells)):
        raise GridFault("not_grids")
    if not grids or not all(grids) or not all(rows):
        raise GridFault("empty")
    if any(len({len(row) for row in grid}) > 1 for grid in grids):
        raise GridFault("ragged")
    if any(type(cell) is not int for cell in cells):
        raise GridFault("not_integer")
    if any(not 0 <= cell <= 9 for cell in cells):
        raise GridFault("out_of_range")
    return grids
