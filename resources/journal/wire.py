"""Operations and answers as bytes, between a runner and the process that commits for it.

Frames of a 4-byte big-endian length and a marshalled plain value: both ends are one program of one interpreter.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any

from resources import errors
from resources.journal.batch import EndOfCall, Finish, Operation
from resources.journal.calls import Dispatch, RateCeiling
from resources.journal.group_commit import Answer
from resources.journal.verdicts import BudgetExhausted, Duplicate, Granted, RateLimited, Stopped

_dispatch_fields = attrgetter(
    "benchmark",
    "case_id",
    "target_id",
    "role",
    "step",
    "attempt",
    "request_sha256",
    "reserved_pico",
    "reserved_tokens",
    "rate",
    "queue_wait_s",
    "call_id",
)
_RATE = 9
_rate_fields = attrgetter("key", "requests_per_minute", "tokens_per_minute", "max_in_flight")
_VERDICTS = (Granted, BudgetExhausted, RateLimited, Duplicate, Stopped)
_verdict_fields = tuple(attrgetter(*kind.__dataclass_fields__) for kind in _VERDICTS)
_ERROR = -1


def frame(value: Any) -> bytes:
    """One plain value as a frame. Raises `ValueError` for what is not plain."""
    data = marshal.dumps(value)
    return len(data).to_bytes(4, "big") + data


class FrameReader:
    """Feed it bytes cut anywhere; it gives the values of the frames that are whole."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[Any]:
        self._rest += data
        view = memoryview(self._rest)
        values: list[Any] = []
        at = 0
        while len(view) - at >= 4:
            end = at + 4 + int.from_bytes(view[at : at + 4], "big")
            if end > len(view):
                break
            values.append(marshal.loads(view[at + 4 : end]))
            at = end
        view.release()
        del self._rest[:at]
        return values


def operation_frame(operation: Operation) -> bytes:
    """An operation as a frame. Raises `ValueError` where it holds what is not plain."""
    if isinstance(operation, Dispatch):
        fields = list(_dispatch_fields(operation))
        rate = fields[_RATE]
        fields[_RATE] = None if rate is None else _rate_fields(rate)
        return frame((True, *fields))
    end = None if operation.end is None else tuple(operation.end)
    return frame((False, end, operation.result))


def read_operation(value: Any) -> Operation:
    """The operation of a frame's value."""
    if value[0]:
        fields = list(value[1:])
        if fields[_RATE] is not None:
            fields[_RATE] = RateCeiling(*fields[_RATE])
        return Dispatch(*fields)
    _, end, result = value
    return Finish(None if end is None else EndOfCall(*end), None, result)


def answers_frame(answers: Iterable[Answer]) -> bytes:
    """The answers to operations, in their order, as one frame."""
    return frame([_plain_answer(answer) for answer in answers])


def read_answers(value: Any) -> Sequence[Answer]:
    """The answers of a frame's value."""
    return [None if answer is None else _answer(*answer) for answer in value]


def _plain_answer(answer: Answer) -> tuple[Any, ...] | None:
    if answer is None:
        return None
    if isinstance(answer, errors.SrBenchError):
        return _ERROR, type(answer).__name__, answer.message, answer.code, answer.field, answer.mend
    if isinstance(answer, OSError):
        return _ERROR, "Unavailable", str(answer), None, "store", None
    if isinstance(answer, Exception):
        return _ERROR, "", f"{type(answer).__name__}: {answer}", None, None, None
    kind = _VERDICTS.index(type(answer))
    fields = _verdict_fields[kind](answer)
    return (kind, *fields) if isinstance(fields, tuple) else (kind, fields)


def _answer(kind: int, *fields: Any) -> Answer:
    if kind != _ERROR:
        return _VERDICTS[kind](*fields)
    name, message, code, field, mend = fields
    known = getattr(errors, name, None) if name else None
    if isinstance(known, type) and issubclass(known, errors.SrBenchError):
        return known(message, code=code, field=field, mend=mend)
    return RuntimeError(message)
