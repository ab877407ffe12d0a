"""LiveCodeBench's hidden tests: base64 of zlib of a pickled JSON string, read without ever unpickling.

A pickle is a program. This reader walks its opcodes and admits only those that push one string, so nothing can be
imported, called or allocated by the data; sizes are bounded before anything is decompressed.
"""

from __future__ import annotations

import base64
import binascii
import json
import pickletools
import zlib
from typing import Any, NoReturn, cast

from resources.errors import SrBenchError

MAX_ENCODED_BYTES = 256 << 20
MAX_DECODED_BYTES = 512 << 20

_STRING = frozenset({"UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"})
_BEFORE = frozenset({"PROTO", "FRAME"})
_AFTER = frozenset({"MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT"})


def decode_tests(
    text: str, *, max_encoded: int = MAX_ENCODED_BYTES, max_decoded: int = MAX_DECODED_BYTES
) -> list[dict[str, str]]:
    """The tests of a `public_test_cases` (JSON) or `private_test_cases` (encoded, or JSON too) column.

    Each test has `input`, `output` and `testtype` (stdin or functional). Raises `SrBenchError` for anything else.
    """
    if len(text) > max_encoded:
        _refuse(f"are {len(text)} bytes long, more than the {max_encoded} that are read")
    if not text.lstrip().startswith("["):
        text = pickled_string(_inflate(text, max_decoded))
    try:
        tests = json.loads(text)
    except (ValueError, RecursionError):
        _refuse("are not JSON")
    if not isinstance(tests, list):
        _refuse("are not a JSON array")
    return [_test(test) for test in cast("list[Any]", tests)]


def pickled_string(data: bytes) -> str:
    """The one string that the pickle `data` consists of. Raises `SrBenchError` for any other pickle."""
    found: list[str] = []
    place = 0
    try:
        for opcode, argument, position in pickletools.genops(data):
            place = position or 0
            if opcode.name in _STRING and not found:
                found.append(str(argument))
            elif opcode.name == "STOP" or opcode.name in (_AFTER if found else _BEFORE):
                continue
            else:
                _refuse(f"hold the pickle operation {opcode.name}, which no string needs")
    except (ValueError, IndexError, EOFError, OverflowError):
        _refuse("are no valid pickle")
    if not found or place != len(data) - 1:
        _refuse("are no pickle of one string")
    return found[0]


def _inflate(text: str, limit: int) -> bytes:
    stream = zlib.decompressobj()
    try:
        data = stream.decompress(base64.b64decode(text, validate=True), limit)
    except (binascii.Error, ValueError, zlib.error):
        _refuse("are no base64 of zlib data")
    if stream.unconsumed_tail:
        _refuse(f"decompress to more than {limit} bytes")
    if not stream.eof or stream.unused_data:
        _refuse("are cut or followed by other data")
    return data


def _test(value: Any) -> dict[str, str]:
    fields = ("input", "output", "testtype")
    if not isinstance(value, dict) or not all(isinstance(value.get(name), str) for name in fields):
        _refuse("hold an entry without input, output and testtype as text")
    if value["testtype"] not in ("stdin", "functional"):
        _refuse("hold an entry whose testtype is neither stdin nor functional")
    return {name: value[name] for name in fields}


def _refuse(what: str) -> NoReturn:
    raise SrBenchError(
        f"hidden tests {what}",
        code="hostile_source",
        field="source_path",
        mend="use the pinned source; nothing of this row was executed or kept",
    )
