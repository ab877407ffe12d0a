"""Operations and answers survive the way to the committing process and back, cut anywhere."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from resources.errors import IntegrityError, NotFound, SrBenchError, Unavailable
from resources.journal.batch import Operation, finish
from resources.journal.calls import RateCeiling
from resources.journal.group_commit import Answer
from resources.journal.verdicts import BudgetExhausted, Duplicate, Granted, RateLimited, Stopped
from resources.journal.wire import (
    FrameReader,
    answers_frame,
    frame,
    operation_frame,
    read_answers,
    read_operation,
)

from .examples import a_dispatch, a_result, an_end

texts = st.text(max_size=8) | st.sampled_from(["\ud800", "\x00"])
rates = st.none() | st.builds(RateCeiling, texts, st.none() | st.integers(1), st.none() | st.integers(1))
dispatches = st.builds(
    lambda case, rate, pico: a_dispatch(case, rate=rate, reserved_pico=pico, queue_wait_s=0.25),
    texts,
    rates,
    st.integers(0, 2**63 - 1),
)
ends = st.builds(
    lambda text, evidence: finish(
        an_end(a_dispatch(1), record={"text": text}, model=text, evidence=evidence),
        a_result(a_dispatch(1), answer=[text, {"a": None}], diagnostics={"why": text}),
    ),
    texts,
    st.binary(max_size=40),
)
verdicts = st.one_of(
    st.builds(Granted, texts, st.integers(0), st.floats(0, 1e10)),
    st.builds(BudgetExhausted, st.integers(0, 2**63), st.integers(-(2**63), 2**63), st.integers(0)),
    st.builds(RateLimited, st.floats(0, 1e10), st.sampled_from(["requests", "tokens", "concurrency"])),
    st.builds(Duplicate, texts),
    st.builds(Stopped, texts),
    st.none(),
)


@given(st.lists(dispatches | ends, max_size=5), st.lists(st.integers(0, 3000), max_size=6))
def test_operations_arrive_whole_and_in_order(operations: list[Operation], cuts: list[int]) -> None:
    sent = b"".join(operation_frame(operation) for operation in operations) + frame("end")
    places = [0, *sorted(min(cut, len(sent)) for cut in cuts), len(sent)]
    reader = FrameReader()
    values = [value for a, b in itertools.pairwise(places) for value in reader.feed(sent[a:b])]
    assert values.pop() == "end"
    assert [read_operation(value) for value in values] == operations


@given(st.lists(verdicts, max_size=6))
def test_answers_come_back_as_they_were(answers: list[Answer]) -> None:
    (value,) = FrameReader().feed(answers_frame(answers))
    assert list(read_answers(value)) == answers


def test_errors_come_back_with_what_people_need() -> None:
    sent = [
        Unavailable("no space", code="disk_full", field="store", mend="free some"),
        NotFound("no call", field="call_id"),
        IntegrityError("changed"),
        OSError(28, "No space left on device"),
        KeyError("x"),
    ]
    (value,) = FrameReader().feed(answers_frame(sent))
    full, missing, changed, disk, other = read_answers(value)
    assert isinstance(full, Unavailable)
    assert full.as_dict() == sent[0].as_dict() if isinstance(sent[0], SrBenchError) else False
    assert isinstance(missing, NotFound)
    assert isinstance(changed, IntegrityError)
    assert isinstance(disk, Unavailable)
    assert "No space left" in disk.message
    assert isinstance(other, RuntimeError)
    assert "KeyError" in str(other)
