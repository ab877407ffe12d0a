"""Nothing that a server sends may raise: it fails its call at most, and leaves evidence that rebuilds to the same."""

from __future__ import annotations

import gzip
import json
import re
import time
import zlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.gateway.answer import final_answer
from resources.gateway.content_coding import MAX_DECODED_BYTES
from resources.gateway.evidence import Evidence, decode_evidence, encode_evidence, kept_headers, rebuild_reply
from resources.gateway.guards import OutputGuard
from resources.gateway.outcome import retry_after_seconds
from resources.gateway.redaction import without_key
from resources.gateway.reply import ReplyBuilder, parse_reply
from resources.gateway.router import read_receipt
from resources.gateway.tolerant_json import decode_json, is_cut_json, json_text
from sr_bench_assets.plans.manifest import Limits
from tests.resources.gateway.calling import ANSWER, DONE, event

SSE = {"content-type": "text/event-stream"}


def _nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


odd_numbers = st.integers() | st.sampled_from([2**63, 2**64, -(2**70), 10**30, 10**400, 1e300, -0.0, 1.5])
odd_values = st.recursive(
    st.none()
    | st.booleans()
    | odd_numbers
    | st.text(st.characters(), max_size=5)
    | st.sampled_from(["\ud800", "\x00", "\udfff\ud800", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
) | st.sampled_from([100, 254, 255, 400, 900, 1500]).map(_nested)
NAMES = [
    "model",
    "usage",
    "choices",
    "error",
    "delta",
    "message",
    "content",
    "reasoning",
    "tool_calls",
    "index",
    "id",
    "function",
    "name",
    "arguments",
    "finish_reason",
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "prompt_tokens_details",
    "cached_tokens",
    "type",
    "text",
    "version",
    "calls",
    "complete",
]
slots = st.dictionaries(st.sampled_from(NAMES), odd_values, max_size=5)
# Odd values in the members where readers look, and chunks of the usual shape around them.
chunks = st.one_of(
    slots,
    slots.map(lambda delta: {"choices": [{"index": 0, "delta": delta}]}),
    slots.map(lambda call: {"choices": [{"delta": {"tool_calls": [call, {"function": call}]}}]}),
    slots.map(lambda usage: {"choices": [], "usage": usage}),
    odd_values.map(lambda error: {"error": error}),
    odd_values,
)


def _text(value: Any) -> bytes:
    try:
        return json.dumps(value).encode()
    except (RecursionError, ValueError):
        return b"[" * 1500 + b"1" * 5000 + b"]" * 1500


bodies = st.one_of(
    st.lists(chunks, max_size=4).map(
        lambda all_: b"".join(b"data: " + _text(c) + b"\n\n" for c in all_) + DONE
    ),
    chunks.map(_text),
    st.binary(max_size=60),
)
headers = st.fixed_dictionaries(
    {
        "content-type": st.sampled_from(
            ["text/event-stream", "application/json", "", "text/html; charset=\xff"]
        )
    },
    optional={
        "content-encoding": st.sampled_from(["gzip", "deflate", "br", "identity", "utf-8"]),
        "x-vsr-model-usage": chunks.map(_text).map(lambda data: data.decode("latin-1")),
        "x-vsr-inference-call-count": st.sampled_from(["1", "-1", "9" * 5000, "²", "1_0", ""]),
        "x-vsr-selected-model": st.text(max_size=4),
        "retry-after": st.text(max_size=6) | st.sampled_from(["1_0", "1e300", "9" * 400, "nan", "-0"]),
    },
)


@settings(max_examples=400, deadline=None)
@given(
    st.sampled_from([200, 204, 301, 400, 429, 503]),
    headers,
    bodies,
    st.sampled_from(["eof", "reset", "stall"]),
)
def test_no_reply_raises_and_its_evidence_gives_the_same_record(
    status: int, sent: dict[str, str], body: bytes, end: Any
) -> None:
    kept = kept_headers([(name.encode(), value.encode("utf-8", "replace")) for name, value in sent.items()])
    builder = ReplyBuilder(status, kept, OutputGuard(Limits()))
    for start in range(0, len(body), 7):
        builder.feed(body[start : start + 7])
    reply = builder.finish(end)
    evidence = Evidence(
        request_sha256="0" * 64,
        started_at=1.0,
        http_status=status,
        headers=kept,
        headers_us=1,
        read_sizes=[len(body)],
        read_us=[2],
        end=end,
        end_us=3,
        never_sent=False,
        detail=None,
        redacted=False,
        body=body,
    )
    data, digest = encode_evidence(evidence)
    rebuilt = rebuild_reply(decode_evidence(data, sha256=digest))
    assert rebuilt.as_dict() == reply.as_dict()
    json_text(reply.as_dict())
    receipt = read_receipt(kept)
    if receipt is not None:
        json_text(receipt.as_dict())
    retry_after_seconds(kept.get("retry-after"), 0.0)


@pytest.mark.parametrize("value", [_nested(3000), "\ud800", 10**30, {"a": [10**5000 if False else 2**70]}])
def test_any_decoded_value_is_written_as_json_text(value: Any) -> None:
    assert isinstance(json.loads(json_text(value)), object)


_OLD_BLOCK = re.compile("<think>.*?</think>", re.DOTALL)
_OLD_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


def _old_final_answer(text: str) -> str:
    rest = _OLD_BLOCK.sub("", text).rpartition("</think>")[2]
    return "" if "<think>" in rest else rest.strip()


@given(
    st.lists(st.sampled_from(["<think>", "</think>", "B", " ", "<", "think>", "\n"]), max_size=12).map(
        "".join
    )
)
def test_the_final_answer_as_by_the_expression(text: str) -> None:
    assert final_answer(text) == _old_final_answer(text)


@given(st.lists(st.sampled_from(['"', "\\", "{", "}", "[", "]", "a", "é", ","]), max_size=14).map("".join))
def test_cut_json_as_by_the_expression(text: str) -> None:
    outside = _OLD_STRING.sub("", text)
    opened = outside.count("{") + outside.count("[") > outside.count("}") + outside.count("]")
    assert is_cut_json(text.encode()) == ('"' in outside or opened)


@pytest.mark.parametrize("unit", ["<think>N", "<think>", "</think>", '\\"', "{", '"'])
def test_long_hostile_texts_are_read_in_no_time(unit: str) -> None:
    text = '{"a":"' + unit * (200_000 // len(unit))
    started = time.process_time()
    final_answer(text)
    is_cut_json(text.encode())
    assert time.process_time() - started < 5  # quadratic, it was a minute


def test_a_number_of_thousands_of_digits_is_json_and_no_count() -> None:
    assert decode_json(b'{"\\ud800": ' + b"9" * 5000 + b"}").value == {"\ufffd": float("inf")}


def _raw_deflate(data: bytes) -> bytes:
    squeezer = zlib.compressobj(wbits=-15)
    return squeezer.compress(data) + squeezer.flush()


CODED = {
    "gzip": ("gzip", gzip.compress(ANSWER)),
    "x-gzip": ("X-GZIP", gzip.compress(ANSWER)),
    "two gzip members": ("gzip", gzip.compress(ANSWER[:60]) + gzip.compress(ANSWER[60:])),
    "zlib": ("deflate", zlib.compress(ANSWER)),
    "raw deflate": ("deflate", _raw_deflate(ANSWER)),
    "plain, called gzip": ("gzip", ANSWER),
    "plain, called utf-8": ("utf-8", ANSWER),
    "a wrong checksum": ("gzip", gzip.compress(ANSWER)[:-8] + b"\0" * 8),
    "no checksum": ("gzip", gzip.compress(ANSWER)[:-8]),
    "more after the end": ("gzip", gzip.compress(ANSWER) + b"trailing"),
}


@pytest.mark.parametrize("name", CODED)
@pytest.mark.parametrize("step", [1, 2, 10_000])
def test_codings_that_nobody_asked_for_are_undone(name: str, step: int) -> None:
    coding, body = CODED[name]
    pieces = [body[at : at + step] for at in range(0, len(body), step)]
    reply = parse_reply(200, {**SSE, "content-encoding": coding}, pieces)
    assert (reply.failure, reply.final, reply.usage.output_tokens) == (None, "The answer is (B)", 4)


@pytest.mark.parametrize("step", [1, 10_000])
def test_a_coded_body_that_is_cut_is_a_truncated_reply(step: int) -> None:
    body = gzip.compress(ANSWER)[:-40]
    pieces = [body[at : at + step] for at in range(0, len(body), step)]
    reply = parse_reply(200, {**SSE, "content-encoding": "gzip"}, pieces, "reset")
    assert reply.failure == "stream_truncated"


def test_a_coding_that_nobody_here_knows_is_named() -> None:
    reply = parse_reply(200, {**SSE, "content-encoding": "zstd"}, [b"\x28\xb5\x2f\xfd", b"more"])
    assert (reply.failure, reply.error_message) == (
        "unknown_encoding",
        "the body has the content encoding 'zstd'",
    )


def test_a_bomb_is_given_up() -> None:
    squeezer = zlib.compressobj(9, wbits=31)
    piece = b" " * (1 << 20)
    body = b"".join(squeezer.compress(piece) for _ in range((MAX_DECODED_BYTES >> 20) + 2)) + squeezer.flush()
    assert len(body) < 100_000
    reply = parse_reply(200, {**SSE, "content-encoding": "gzip"}, [body])
    assert reply.failure == "unknown_encoding"


def test_text_that_is_called_json_is_malformed_and_not_cut() -> None:
    json_type = {"content-type": "application/json"}
    assert parse_reply(200, json_type, [b"Internal error"]).failure == "invalid_json"
    assert parse_reply(200, json_type, [b'{"choices": [{"mess']).failure == "stream_truncated"
    for pieces in ([ANSWER], [ANSWER[:2], ANSWER[2:]], [b": hi\n\n", ANSWER]):
        assert parse_reply(200, json_type, pieces).final == "The answer is (B)"


KEY = "sk/test-0123456789"


@pytest.mark.parametrize(
    "body",
    [
        event(f"your key {KEY}"),
        event("your key ").replace(b"your key ", b"your key sk\\/test\\u002D0123456789"),
        event("your key sk/test") + event("-0123456789"),
        b'data: {"error": {"message": "bad key sk\\u002ftest-0123456789"}}\n\n',
        b'data: {"choices":[{"delta":{"tool_calls":[{"id":"sk/test-0123456789"}]}}]}\n\n',
    ],
)
@pytest.mark.parametrize("coded", [False, True])
def test_a_key_is_found_however_it_is_written(body: bytes, coded: bool) -> None:
    body += event(finish="stop") + DONE
    raw = gzip.compress(body) if coded else body
    kept = {**SSE, "content-encoding": "gzip"} if coded else SSE
    reply = parse_reply(200, kept, [raw])
    assert KEY in json.dumps(reply.as_dict()) + str(reply.error_message)
    evidence = Evidence("0" * 64, 1.0, 200, kept, 1, [len(raw)], [2], "eof", 3, False, None, False, raw)
    found = without_key(evidence, reply, KEY)
    assert found is not None
    clean, rebuilt = found
    assert KEY not in json.dumps(rebuilt.as_dict()) + str(rebuilt.error_message)
    assert rebuild_reply(clean).as_dict() == rebuilt.as_dict()
    assert len(clean.body) == len(raw)
