"""LiveCodeBench's encoded tests: what upstream writes is read, anything a hostile pickle could do is refused."""

from __future__ import annotations

import base64
import json
import os
import pickle
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.errors import SrBenchError
from sr_bench_assets.benchmarks.hidden_tests import decode_tests, pickled_string

TESTS = [
    {"input": "1 2\n", "output": "3", "testtype": "stdin"},
    {"input": "", "output": "é", "testtype": "functional"},
]


def encode(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data)).decode()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_what_upstream_writes_is_read(protocol: int) -> None:
    assert decode_tests(encode(pickle.dumps(json.dumps(TESTS), protocol))) == TESTS


def test_plain_json_is_read() -> None:
    assert decode_tests(json.dumps(TESTS)) == TESTS


@given(text=st.text(), protocol=st.integers(0, pickle.HIGHEST_PROTOCOL))
def test_any_string_survives(text: str, protocol: int) -> None:
    assert pickled_string(pickle.dumps(text, protocol)) == text


@given(data=st.binary(max_size=60))
def test_any_bytes_are_a_string_or_refused(data: bytes) -> None:
    try:
        text = pickled_string(data)
    except SrBenchError:
        return
    assert pickle.loads(data) == text


class Hostile:
    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.mark}",)


def test_code_in_a_pickle_is_refused_and_never_runs(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    for value in (Hostile(mark), [json.dumps(TESTS), Hostile(mark)]):
        with pytest.raises(SrBenchError, match="pickle operation"):
            decode_tests(encode(pickle.dumps(value)))
    assert not mark.exists()


@pytest.mark.parametrize(
    "data",
    [
        pickle.dumps(["[]"]),
        pickle.dumps(("[]", "[]")),
        pickle.dumps(b"[]"),
        pickle.dumps(7),
        pickle.dumps("[]") + b"x",
        pickle.dumps("[]")[:-1],
        pickle.dumps("[]") * 2,
        b"\x80\x04r\xff\xff\xff\xff\x8c\x02[].",
        b"X\xff\xff\xff\x7f[].",
        b"",
        b".",
    ],
)
def test_other_pickles_are_refused(data: bytes) -> None:
    with pytest.raises(SrBenchError):
        decode_tests(encode(data))


@pytest.mark.parametrize(
    "text", ["", "!!", "AAAA", "eA==", encode(b"x")[:-8], encode(pickle.dumps("[]"))[:-4]]
)
def test_broken_encodings_are_refused(text: str) -> None:
    with pytest.raises(SrBenchError):
        decode_tests(text)


def test_sizes_are_bounded_before_anything_is_unpacked() -> None:
    bomb = encode(pickle.dumps("[" + " " * 5_000_000))
    with pytest.raises(SrBenchError, match="decompress to more than 1000000"):
        decode_tests(bomb, max_decoded=1_000_000)
    with pytest.raises(SrBenchError, match="more than the 10"):
        decode_tests(bomb, max_encoded=10)


@pytest.mark.parametrize(
    "value", [{}, [1], [{"input": "1"}], [{"input": 1, "output": "1", "testtype": "stdin"}],
              [{"input": "1", "output": "1", "testtype": "shell"}]],
)  # fmt: skip
def test_other_json_is_refused(value: Any) -> None:
    with pytest.raises(SrBenchError):
        decode_tests(encode(pickle.dumps(json.dumps(value))))
