"""The multiple-choice reader beyond the vectors: many variants of each form, and properties over all of them."""

from __future__ import annotations

import json
from pathlib import Path
from string import ascii_uppercase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sr_bench_assets.benchmarks.contract import Case
from sr_bench_assets.benchmarks.grading import choice_declarations
from sr_bench_assets.benchmarks.grading.multiple_choice import grade_choice, read_choice

GROUPS = json.loads((Path(__file__).parent / "choice_replies.json").read_text("utf-8"))["groups"]
REPLIES = [
    pytest.param(*reply, id=f"{group}-{n}") for group in GROUPS for n, reply in enumerate(GROUPS[group])
]

WRAPPERS = (
    "({})",
    "[{}]",
    "${}$",
    "$${}$$",
    "\\({}\\)",
    "\\text{{{}}}",
    "\\textbf{{{}}}",
    "\\mathbf{{{}}}",
    "{{{}}}",
)
EMPHASIS = ("{}", "**{}**", "*{}*", "__{}__", "`{}`", "***{}***")
LABELS = (
    "The answer is {}", "Answer: {}", "**Answer:** {}", "The final answer is: {}", "best answer {}", "Answer:\n\n{}",
    "The correct option is {}", "Correct choice is {}", "答案是{}", "答案：{}", "Antwort: {}", "Die Antwort lautet {}",
    "La réponse est {}", "La respuesta correcta es {}", "<answer>{}</answer>", "The correct answer is option {}",
)  # fmt: skip


@pytest.mark.parametrize(("text", "options", "expected"), REPLIES)
def test_reply(text: str, options: int, expected: str | None) -> None:
    choice = read_choice(text, options)
    assert (choice.status if choice.answer is None else choice.answer) == (expected or "unparsed")


@given(
    letter=st.sampled_from("ABCD"),
    wrappers=st.lists(st.sampled_from(WRAPPERS), max_size=3),
    emphasis=st.sampled_from(EMPHASIS),
    label=st.sampled_from(LABELS),
    end=st.sampled_from(("", ".", "\n", ", because A and B are off.", ". A or B would need more.")),
)
def test_every_declaration_reads_every_letter_form(
    letter: str, wrappers: list[str], emphasis: str, label: str, end: str
) -> None:
    form = letter
    for wrapper in wrappers:
        form = wrapper.format(form)
    choice = read_choice("Some reasoning.\n" + label.format(emphasis.format(form)) + end, 4)
    assert (choice.answer, choice.status, choice.strict_format) == (letter, "parsed", False)


@given(
    letters=st.lists(st.sampled_from("ABCD"), min_size=2, max_size=2, unique=True),
    joint=st.sampled_from((" or ", " and ", "/", ", ", " & ", " or maybe ", ", or ")),
    emphasis=st.sampled_from(EMPHASIS),
    wrapper=st.sampled_from(("{}", *WRAPPERS)),
    label=st.sampled_from(LABELS),
)
def test_two_letters_are_ambiguous(
    letters: list[str], joint: str, emphasis: str, wrapper: str, label: str
) -> None:
    named = joint.join(emphasis.format(wrapper.format(letter)) for letter in letters)
    assert read_choice(label.format(named), 4).status == "ambiguous"


@given(
    wrappers=st.lists(st.sampled_from((*WRAPPERS[0:1], *WRAPPERS[2:])), max_size=4),
    letter=st.sampled_from(ascii_uppercase),
    options=st.sampled_from((4, 10)),
)
def test_boxed_letters(wrappers: list[str], letter: str, options: int) -> None:
    content = letter
    for wrapper in wrappers:
        content = wrapper.format(content)
    choice = read_choice(f"First \\boxed{{A}}? Then $\\boxed{{{content}}}$ it is", options)
    assert choice.answer == (letter if letter in ascii_uppercase[:options] else "A")


@given(text=st.text(max_size=300), options=st.integers(2, 10))
def test_any_text_is_read_without_error(text: str, options: int) -> None:
    choice = read_choice(text, options)
    assert (choice.answer is not None) == (choice.status == "parsed")
    assert choice.answer is None or choice.answer in ascii_uppercase[:options]
    assert not choice.strict_format or choice.status == "parsed"


PIECES = st.sampled_from(
    ("answer", "Answer: ", " is ", "final answer", "A", "C", "d", "(", ")", "[", "]", "{", "}", "$", "*", "_", "\n",
     " ", ",", ".", "or", "and", "\\boxed{", "\\text{", "/", "not ", "I ", "答案", "：", '"', "either ")
)  # fmt: skip


@given(pieces=st.lists(PIECES, max_size=60))
def test_any_mixture_of_forms_is_read_without_error(pieces: list[str]) -> None:
    choice = read_choice("".join(pieces), 4)
    assert choice.answer is None or choice.answer in "ABCD"


@pytest.mark.parametrize(
    "unit",
    ["answer ", "answer: A, ", "A, ", " ", "\n", "answer:\n", "\\boxed{", "[", "(", "$", "*", "answer *"],
)
def test_long_hostile_replies_are_read(unit: str) -> None:
    read_choice("Answer: A " + unit * (131_072 // len(unit)), 10)


@pytest.mark.parametrize(
    ("text", "strict"),
    [("C", True), ("(C)", True), (" C.\n", True), ("answer: C", True), ("Answer: c", False), ("Ｃ", False),
     ("**C**", False), ("(C).", False), ("Answer: (C)", False), ("Answer: C.", False), ("Reason.\nC", False)],
)  # fmt: skip
def test_strict_format_is_the_bare_answer(text: str, strict: bool) -> None:
    choice = read_choice(text, 4)
    assert (choice.answer, choice.strict_format) == ("C", strict)


def test_anything_but_the_right_letter_is_not_correct() -> None:
    case = Case(
        id="x/1",
        benchmark="x",
        category="x",
        messages=[],
        input={"options": ["p", "q"]},
        reference={"answer": "B"},
    )
    grades = [grade_choice(case, text) for text in ("B", "A", "C", "A or B?", "Answer: A or B")]
    assert [grade.correct for grade in grades] == [True, False, False, False, False]
    assert [grade.reason for grade in grades] == [None, None, "unparsed", "unparsed", "ambiguous"]


_WORDS = st.sampled_from(
    [
        "final",
        "Best",
        "correct",
        "right",
        "answer",
        "ANSWER",
        "option",
        "choice",
        "is",
        "is:",
        ":",
        " ",
        " " * 15,
        "\t",
        "*",
        "**",
        "_",
        "`",
        "#",
        "\n",
        "<",
        "<final_",
        "<answer>",
        "antwort",
        "lautet",
        "réponse",
        "RÉPONSE",
        "est",
        "respuesta",
        "es",
        "答案",
        "应该",
        "是",
        "：",
        "İ",
        "(B)",
        "C",
        "the",
        "'",
        "x1",
        "\r",
    ]
)


@given(st.lists(_WORDS, max_size=20).map("".join))
def test_labels_are_found_by_keyword_as_by_searching_everywhere(text: str) -> None:
    found = choice_declarations._labels(text)
    assert [label.span() for label in found] == [
        label.span() for label in choice_declarations._LABEL.finditer(text)
    ]
