"""Reading answer grids beyond the vectors."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sr_bench_assets.benchmarks.contract import Case
from sr_bench_assets.benchmarks.grading.grids import Grid, grade_grids, read_grids


@st.composite
def grids(draw: st.DrawFn) -> Grid:
    width = draw(st.integers(1, 4))
    row = st.lists(st.integers(0, 9), min_size=width, max_size=width)
    return draw(st.lists(row, min_size=1, max_size=4))


PROSE = st.text(st.characters(exclude_characters="[]`"), max_size=80)


@given(
    answer=st.lists(grids(), min_size=1, max_size=3),
    prose=PROSE,
    indent=st.sampled_from((None, 0, 2)),
    data=st.data(),
)
def test_written_grids_are_read_back(
    answer: list[Grid], prose: str, indent: int | None, data: st.DataObject
) -> None:
    array = json.dumps(answer, indent=indent)
    fenced = f"```json\n{array}\n```"
    text = prose + "\n" + data.draw(st.sampled_from((array, fenced, f"```\n{array}```", f"```json\n{array}")))
    assert read_grids(text + "  \n", len(answer)).grids == answer


@given(answer=st.lists(grids(), min_size=1, max_size=3), data=st.data())
def test_a_cut_array_is_never_repaired(answer: list[Grid], data: st.DataObject) -> None:
    array = json.dumps(answer)
    cut = array[: data.draw(st.integers(0, len(array) - 1))]
    assert read_grids("The output is " + cut, len(answer)).reason == "no_array"


@given(grid=grids())
def test_a_bare_grid_answers_one_test_only(grid: Grid) -> None:
    assert read_grids(json.dumps(grid), 1).grids == [grid]
    assert read_grids(json.dumps(grid), 2).reason == "not_grids"


@given(
    text=st.text(st.sampled_from('[]{}",:0123456789.-e \ntrufalsn`jo'), max_size=120),
    inputs=st.integers(1, 3),
)
def test_any_text_is_read_without_error(text: str, inputs: int) -> None:
    reading = read_grids(text, inputs)
    assert (reading.grids is None) != (reading.reason is None)


@pytest.mark.parametrize(
    ("text", "inputs", "reason"),
    [
        ("", 1, "no_array"),
        ("[[1,2],[3,4],]", 1, "no_array"),
        ("[[1,2],[3,4]", 1, "no_array"),
        ("[[[1,2],[3,4]], [[5", 2, "no_array"),
        ("[[NaN]]", 1, "no_array"),
        ("[[01]]", 1, "no_array"),
        ('{"grids": [[1]]}', 1, "no_array"),
        ("[[1]]\n```", 1, "no_array"),
        ("```python\n[[1]]\n```", 1, "no_array"),
        ("```json\n[[1]]\n``` done", 1, "no_array"),
        ("[[1]].", 1, "no_array"),
        ("The rule [see above] holds.\n[[1,2],[3,x]]", 1, "no_array"),
        ("[1, 2] is a row. [[1]]", 1, "several_arrays"),
        ("[[1]][[2]]", 1, "several_arrays"),
        ("[[[1]]]\n[[[1]]]", 1, "several_arrays"),
        ("[1,2]", 1, "not_grids"),
        ("[[1,2],[[3]]]", 1, "not_grids"),
        ("[[[1,[2]]]]", 1, "not_grids"),
        ("[[[[1]]]]", 1, "not_grids"),
        ("[null]", 1, "not_grids"),
        ('["1"]', 1, "not_grids"),
        ("[[]]", 1, "empty"),
        ("[[]]", 2, "empty"),
        ("[[[1]], []]", 2, "empty"),
        ("[[1,2],[]]", 1, "empty"),
        ("[[1,2],[3]]", 1, "ragged"),
        ("[[[1]],[[1,2],[3]]]", 2, "ragged"),
        ("[[true]]", 1, "not_integer"),
        ("[[null]]", 1, "not_integer"),
        ("[[1.0]]", 1, "not_integer"),
        ("[[1e0]]", 1, "not_integer"),
        ("[[{}]]", 1, "not_integer"),
        ("[[-1]]", 1, "out_of_range"),
        ("[[1" + "0" * 5000 + "]]", 1, "out_of_range"),
        ("[" * 50_000, 1, "no_array"),
        ("[" * 50_000 + "]" * 50_000, 1, "no_array"),
        ("[a]" * 20_000, 1, "no_array"),
    ],
)
def test_refusals(text: str, inputs: int, reason: str) -> None:
    assert read_grids(text, inputs).reason == reason


@pytest.mark.parametrize(
    "text", ["I map [a] to [b].\n[[1]]", "```JSON\n[[1]]\n```", "See ```x``` first: [[ 1 ]]"]
)
def test_brackets_that_are_not_json_are_prose(text: str) -> None:
    assert read_grids(text, 1).grids == [[[1]]]


def test_grading_compares_all_grids() -> None:
    case = Case(
        id="x/1", benchmark="x", category="all", messages=[], input={}, reference={"grids": [[[1]], [[2]]]}
    )
    right, half, none = (grade_grids(case, text) for text in ("[[[1]],[[2]]]", "[[[1]]]", "?"))
    assert (right.correct, right.score, right.answer) == (True, 1.0, [[[1]], [[2]]])
    assert (half.correct, half.answer_status) == (False, "parsed")
    assert (none.correct, none.answer_status, none.reason) == (False, "unparsed", "no_array")
