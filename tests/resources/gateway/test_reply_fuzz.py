"""Streams made up by hypothesis: the fast incremental parser against the plain one, and against itself."""

from __future__ import annotations

import itertools
import json
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from resources.gateway.guards import OutputGuard
from resources.gateway.record import End
from resources.gateway.reply import ReplyBuilder, parse_reply
from resources.gateway.sse import EventStreamDecoder
from sr_bench_assets.plans.manifest import Limits
from tests.resources.gateway.slow_parser import slow_reply

STREAM = {"content-type": "text/event-stream"}
words = st.sampled_from(["", "B", "größe", "🐋", "\u2028", "<think>", "</think>", "a b", "\\", '"', "\ud835"])
deltas = st.fixed_dictionaries(
    {},
    optional={
        "content": words | st.none() | st.lists(st.fixed_dictionaries({"type": words, "text": words})),
        "reasoning": words | st.none(),
        "reasoning_content": words | st.none(),
        "tool_calls": st.none()
        | st.lists(
            st.fixed_dictionaries(
                {},
                optional={
                    "index": st.integers(0, 2),
                    "id": st.sampled_from(["call_a", "b"]),
                    "function": st.fixed_dictionaries({}, optional={"name": words, "arguments": words}),
                },
            ),
            max_size=2,
        ),
    },
)
choices = st.fixed_dictionaries(
    {},
    optional={
        "index": st.integers(0, 1),
        "delta": deltas | st.none(),
        "message": deltas,
        "finish_reason": st.sampled_from(["stop", "length", "tool_calls", "odd", "", None]),
    },
)
chunks = st.fixed_dictionaries(
    {},
    optional={
        "model": words,
        "choices": st.lists(choices, max_size=2) | st.none(),
        "error": st.sampled_from([None, None, None, "overloaded", {"message": "x"}]),
        "usage": st.none() | st.just({"prompt_tokens": 1, "completion_tokens": 2}),
    },
)
payloads = st.one_of(
    chunks.map(lambda value: json.dumps(value).encode()),
    chunks.map(lambda value: json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")),
    chunks.map(lambda value: json.dumps(value, indent=1).encode().replace(b"\n", b"\ndata:")),
    st.sampled_from([b"[DONE]", b"[DONE] ", b"[DONE", b"", b" ", b"1", b"null", b"{", b'{"a":NaN}', b"[]"]),
    st.sampled_from(
        [b'{"model":"\xff"}', b'{"choices":[{"delta":{"content":"a\xf0\x9f"}}]}', b"\xef\xbb\xbf{}"]
    ),
)
line_ends = st.sampled_from([b"\n", b"\r\n", b"\r"])
noise = st.sampled_from(
    [b": ping", b"event: message", b"id: 1", b"Data: {}", b" data: {}", b"data", b":", b"x"]
)


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    """A stream of events with comments, other fields, mixed line ends, perhaps cut short anywhere."""
    parts = [draw(st.sampled_from([b"", b"", b"\xef\xbb\xbf", b"\xef\xbb"]))]
    for _ in range(draw(st.integers(0, 6))):
        if draw(st.integers(0, 3)) == 0:
            parts += [draw(noise), draw(line_ends)]
        space = draw(st.sampled_from([b"", b" ", b"  "]))
        parts += [b"data:", space, draw(payloads), draw(line_ends)]
        parts += [draw(line_ends)] if draw(st.integers(0, 7)) else []
    body = b"".join(parts)
    return body[: draw(st.integers(0, len(body)))] if draw(st.booleans()) else body


def _pieces(body: bytes, cuts: list[int]) -> list[bytes]:
    places = [0, *sorted(min(cut, len(body)) for cut in cuts), len(body)]
    return [body[a:b] for a, b in itertools.pairwise(places)]


def _without_own_rules(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in ("final", "usage")}


@settings(max_examples=600, deadline=None)
@given(bodies(), st.lists(st.integers(0, 400), max_size=6), st.sampled_from(["eof", "reset", "stall"]))
@example(b"data: [DONE]", [], "reset")
@example(b"data:  {\ndata", [], "eof")
@example(b'data: {"choices":[{"finish_reason":"stop"}]}\n\n: pi', [], "eof")
@example(b'data: {"choices":[{"finish_reason":"stop"}]}\n', [3], "eof")
def test_equals_the_plain_parser_whatever_the_cuts(body: bytes, cuts: list[int], end: End) -> None:
    expected = slow_reply(200, body, end)
    assert _without_own_rules(parse_reply(200, STREAM, [body], end).as_dict()) == expected
    assert _without_own_rules(parse_reply(200, STREAM, _pieces(body, cuts), end).as_dict()) == expected


@settings(max_examples=200, deadline=None)
@given(
    st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=8), st.sampled_from([200, 204, 302, 500])
)
def test_any_bytes_make_a_record_whatever_the_cuts(body: bytes, cuts: list[int], status: int) -> None:
    for headers in (STREAM, {"content-type": "application/json"}, {}):
        whole = parse_reply(status, headers, [body])
        assert parse_reply(status, headers, _pieces(body, cuts)) == whole
        json.dumps(whole.as_dict(), ensure_ascii=False).encode()


@settings(max_examples=200, deadline=None)
@given(
    bodies(), st.lists(st.integers(0, 400), max_size=6), st.sampled_from(["eof", "reset", "total_timeout"])
)
def test_a_guarded_reply_is_rebuilt_from_the_bytes_it_read(body: bytes, cuts: list[int], end: End) -> None:
    limits = Limits(max_output_chars=6, max_output_tokens=1, repetition_window=1, repetition_limit=3)
    live = ReplyBuilder(200, STREAM, OutputGuard(limits))
    read: list[bytes] = []
    for piece in _pieces(body, cuts):
        read.append(piece)
        live.feed(piece)
        if live.finished:
            break
    reply = live.finish(end)
    offline = ReplyBuilder(200, STREAM)
    for piece in read:
        offline.feed(piece)
    assert offline.finish(end, live.verdict) == reply


@given(chunks, st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_json_body_cut_anywhere_is_never_complete(value: dict[str, Any], guarded: bool) -> None:
    body = json.dumps({**value, "choices": value.get("choices") or []}).encode()
    for cut in range(1, len(body)):
        reply = parse_reply(200, {"content-type": "application/json"}, [body[:cut]])
        assert reply.failure == "stream_truncated"


def test_the_decoder_is_linear_in_small_reads() -> None:
    decoder = EventStreamDecoder()
    line = b"data: " + b"x" * 400_000
    for at in range(len(line)):
        assert not decoder.feed(line[at : at + 1])
    assert decoder.feed(b"\n\n") == [b"x" * 400_000]
