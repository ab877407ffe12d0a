"""Evidence frames: identity, damage, and what they leave out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from resources.errors import IntegrityError
from resources.gateway.evidence import Evidence, decode_evidence, encode_evidence, kept_headers, rebuild_reply
from resources.gateway.outcome import retry_after_seconds
from tests.resources.gateway.calling import ANSWER

EVIDENCE = Evidence(
    request_sha256="0" * 64,
    started_at=1_790_000_000.25,
    http_status=200,
    headers={"content-type": "text/event-stream"},
    headers_us=5,
    read_sizes=[40, len(ANSWER) - 40],
    read_us=[6, 9],
    end="eof",
    end_us=10,
    never_sent=False,
    detail=None,
    redacted=False,
    body=ANSWER,
)


def test_a_frame_reads_back_and_its_identity_is_independent_of_compression() -> None:
    fast, digest = encode_evidence(EVIDENCE, level=1)
    small, same = encode_evidence(EVIDENCE, level=19)
    assert digest == same
    for data in (fast, small):
        assert decode_evidence(data, sha256=digest) == EVIDENCE
    assert rebuild_reply(EVIDENCE).text == "The answer is (B)"
    assert b"".join(EVIDENCE.reads()) == ANSWER


def test_damage_is_noticed() -> None:
    data, digest = encode_evidence(EVIDENCE)
    with pytest.raises(IntegrityError):
        decode_evidence(data[:-3], sha256=digest)
    with pytest.raises(IntegrityError):
        decode_evidence(b"nothing", sha256=digest)
    other, _ = encode_evidence(replace(EVIDENCE, body=ANSWER.replace(b"B", b"C")))
    with pytest.raises(IntegrityError):
        decode_evidence(other, sha256=digest)
    wrong, _ = encode_evidence(replace(EVIDENCE, read_sizes=[1]))
    with pytest.raises(IntegrityError):
        decode_evidence(wrong)


def test_only_headers_of_interest_are_kept() -> None:
    kept = kept_headers(
        [
            (b"set-cookie", b"session=1"),
            (b"x-vsr-selected-model", b"m"),
            (b"content-type", b"a/b"),
            (b"x-other", b"no"),
            (b"via", b"one"),
            (b"via", "zwei \u2192".encode()),
            (b"server", b"caf\xe9"),
        ]
    )
    assert kept == {
        "x-vsr-selected-model": "m",
        "content-type": "a/b",
        "via": "one, zwei \u2192",
        "server": "caf\xe9",
    }


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("3", 3.0),
        (" 0.5 ", 0.5),
        ("-1", None),
        ("inf", None),
        ("nan", None),
        ("soon", None),
        ("Mon, 21 Sep 2026 14:13:30 GMT", 10.0),
        ("Mon, 21 Sep 2026 14:13:10 GMT", 0.0),
        (None, None),
    ],
)
def test_retry_after(value: str | None, seconds: float | None) -> None:
    assert retry_after_seconds(value, 1_790_000_000.0) == seconds
