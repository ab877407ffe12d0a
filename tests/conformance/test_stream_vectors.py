"""The event-stream vectors: each as given, and again with its bytes cut at other places."""

from __future__ import annotations

import base64
import json
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from resources.gateway.reply import parse_reply

DATA = Path(__file__).parent / "data" / "sse"
CASES = [case for path in sorted(DATA.glob("*.json")) for case in json.loads(path.read_text())["cases"]]


def _cut(body: bytes, sizes: list[int]) -> list[bytes]:
    chunks: list[bytes] = []
    at = 0
    for size in sizes:
        chunks.append(body[at : at + size])
        at += size
    assert at == len(body)
    return chunks


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_vector(case: dict[str, Any]) -> None:
    body = base64.b64decode(case["body_base64"])
    reply = parse_reply(case["http_status"], case["headers"], _cut(body, case["reads"]), case["end"])
    assert reply.as_dict() == case["expect"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_vector_whatever_the_cuts(case: dict[str, Any]) -> None:
    body = base64.b64decode(case["body_base64"])
    ways = [[body], [body[i : i + 1] for i in range(len(body))]]
    dice = random.Random(case["id"])
    for _ in range(10):
        cuts = [0, *sorted(dice.sample(range(1, len(body)), min(7, len(body) - 1))), len(body)]
        ways.append([body[a:b] for a, b in pairwise(cuts)])
    for chunks in ways:
        reply = parse_reply(case["http_status"], case["headers"], chunks, case["end"])
        assert reply.as_dict() == case["expect"]
