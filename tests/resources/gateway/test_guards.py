"""The repetition guard against its definition, whatever the pieces."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from resources.gateway.guards import RepetitionGuard


def _repeats(text: str, window: int, limit: int) -> bool:
    """The definition: some window occurs `limit` times in a row."""
    size = window * limit
    return any(text[at : at + window] * limit == text[at : at + size] for at in range(len(text) - size + 1))


@settings(max_examples=500, deadline=None)
@given(
    st.lists(st.text(alphabet="ab", max_size=40), max_size=8),
    st.integers(1, 12),
    st.integers(2, 5),
)
def test_equals_the_definition(pieces: list[str], window: int, limit: int) -> None:
    guard = RepetitionGuard(window, limit)
    for piece in pieces:
        guard.add(piece)
    assert guard.tripped == _repeats("".join(pieces), window, limit)


@given(st.integers(1, 200), st.integers(2, 6), st.text(alphabet="abcdefgh", max_size=50), st.integers(1, 500))
@settings(max_examples=200, deadline=None)
def test_finds_a_repetition_wherever_it_begins(window: int, limit: int, before: str, step: int) -> None:
    unit = "".join(chr(0x4E00 + number) for number in range(window))
    # Different letters, none of them in the unit, so that what comes before repeats nothing itself.
    before = "".join(sorted(set(before)))
    text = before + unit * limit
    guard = RepetitionGuard(window, limit)
    for at in range(0, len(text), step):
        guard.add(text[at : at + step])
    assert guard.tripped
    assert not RepetitionGuard(window, limit).add(before + unit * (limit - 1) + "!")
