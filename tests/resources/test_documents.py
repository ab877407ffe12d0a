"""Documents that people write: YAML and JSON are read alike, and nothing is reinterpreted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from resources.documents import MAX_BYTES, parse_document, read_document
from resources.errors import NotFound, SrBenchError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: no", {"a": "no"}),
        ("a: 1:30", {"a": "1:30"}),
        ("a: 2026-09-18", {"a": "2026-09-18"}),
        ("a: 010", {"a": 10}),
        ("a: 1e-7", {"a": 1e-7}),
        ("a: 0x10", {"a": "0x10"}),
        ("a: true", {"a": True}),
        ("a: ~", {"a": None}),
        ("a:", {"a": None}),
        ("a: .5", {"a": 0.5}),
        ("{a: b}", {"a": "b"}),
        ('{"a": 1.0}', {"a": 1.0}),
        ("[1, 2]", [1, 2]),
        ("a: &x {b: 1}\nc: *x", {"a": {"b": 1}, "c": {"b": 1}}),
        ("base: &x {b: 1}\nc: {<<: *x, d: 2}", {"base": {"b": 1}, "c": {"b": 1, "d": 2}}),
        ("\ufeffa: 1", {"a": 1}),
    ],
)
def test_values(text: str, value: Any) -> None:
    assert parse_document(text.encode(), "f") == value


@pytest.mark.parametrize(
    ("data", "part"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b"\xff\xfe", "UTF-8"),
        (b"a: [1", "line"),
        (b"a: 1\na: 2", "twice"),
        (b'{"a": 1, "a": 2}', "twice"),
        (b'{"x": {"a": 1, "a": 2}}', "twice"),
        (b"x:\n  a: 1\n  a: 1", "twice"),
        (b"1: a", "not text"),
        (b"true: a", "not text"),
        (b"? [a]\n: b", "YAML"),
        (b"a: .nan", "infinite"),
        (b"a: -.inf", "infinite"),
        (b'{"a": NaN}', "infinite"),
        (b'{"a": 1e999}', "infinite"),
        (b'{"a": "\\ud800"}', "surrogate"),
        (b"a: !!python/object/apply:os.system [ls]", "line 1"),
        (b"a: !!binary aGk=", "bytes"),
        (b"a: !!set {b}", "set"),
        (b"a: &x [*x]", "nested"),
        (b"[" * 3000, ""),
        (b"{'a':" * 3000 + b"1" + b"}" * 3000, "nested"),
        (b"--- a\n--- b", "line 2"),
        (b"a: \x00", "YAML"),
        (b"x" * (MAX_BYTES + 1), "bytes"),
    ],
)
def test_refused(data: bytes, part: str) -> None:
    with pytest.raises(SrBenchError) as caught:
        parse_document(data, "file.yaml")
    assert part in caught.value.message
    assert "file.yaml" in caught.value.message
    assert caught.value.mend


def test_aliases_that_unfold_without_end() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(SrBenchError, match="values"):
        parse_document("\n".join(lines).encode(), "bomb")


def test_the_faulty_line_is_not_repeated() -> None:
    with pytest.raises(SrBenchError) as caught:
        parse_document(b"key: 'sk-secret", "f")
    assert "sk-secret" not in str(caught.value.as_dict())


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=12,
)


class QuotingDumper(yaml.SafeDumper):
    """Writes every text in quotes: PyYAML leaves some bare (`0E0`, `1:30`) that YAML 1.2 reads as numbers."""


QuotingDumper.add_representer(
    str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"')
)


@given(st.dictionaries(st.text(max_size=9), json_values, max_size=5))
def test_yaml_and_json_of_a_document_are_read_alike(document: dict[str, Any]) -> None:
    assert parse_document(json.dumps(document).encode(), "f") == document
    assert parse_document(yaml.dump(document, Dumper=QuotingDumper).encode(), "f") == document


@given(st.binary(max_size=60))
def test_any_bytes_give_a_value_or_a_clear_error(data: bytes) -> None:
    try:
        value = parse_document(data, "f")
    except SrBenchError:
        return
    json.dumps(value, allow_nan=False)


def test_files(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        read_document(tmp_path / "none.yaml")
    with pytest.raises(SrBenchError, match="folder"):
        read_document(tmp_path)
    file = tmp_path / "m.yaml"
    file.write_text("a: 1")
    assert read_document(file) == {"a": 1}
