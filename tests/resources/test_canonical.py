"""Canonical JSON: the fast path gives the bytes of the reference implementation, or leaves the value to it."""

from __future__ import annotations

from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from resources.canonical import canonical_bytes, content_hash

scalars = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(alphabet=st.characters(codec=None))
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)


@given(values)
def test_same_bytes_or_the_same_refusal_as_the_reference(value: Any) -> None:
    try:
        expected = rfc8785.dumps(value)
    except rfc8785.CanonicalizationError:
        with pytest.raises(rfc8785.CanonicalizationError):
            canonical_bytes(value)
    else:
        assert canonical_bytes(value) == expected


def test_the_identity_does_not_depend_on_the_order_of_members() -> None:
    assert content_hash({"b": [1, 2.0, "é"], "a": None}) == content_hash({"a": None, "b": [1, 2, "é"]})


def test_keys_beyond_the_basic_plane_sort_by_utf16() -> None:
    assert canonical_bytes({"￿": 1, "\U00010000": 2}) == '{"\U00010000":2,"￿":1}'.encode()
