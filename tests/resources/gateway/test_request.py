"""The bytes of a request: what comes over what, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from resources.errors import SrBenchError
from resources.gateway.request import build_request
from sr_bench_assets.plans.manifest import Limits, Sampling
from tests.resources.gateway.calling import MESSAGES, target

BASE = "http://gateway.test/v1"


def _body(
    extra: dict[str, Any] | None = None, sampling: Sampling | None = None, **params: Any
) -> dict[str, Any]:
    to = target(BASE, request_params=params)
    return json.loads(build_request(to, sampling or Sampling(), Limits(), MESSAGES, extra).body)


def test_a_streamed_request_asks_for_usage() -> None:
    assert _body() == {
        "model": "m-1",
        "messages": MESSAGES,
        "temperature": 0.0,
        "top_p": 1.0,
        "max_tokens": 4096,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert "stream_options" not in _body(sampling=Sampling(stream=False))


def test_request_params_come_over_extra_and_sampling_and_null_takes_out() -> None:
    body = _body({"tools": [], "top_p": 0.5}, top_p=0.25, temperature=None, seed=7)
    assert (body["tools"], body["top_p"], body["seed"]) == ([], 0.25, 7)
    assert "temperature" not in body


def test_the_newer_name_of_the_token_cap_replaces_the_older() -> None:
    to = target(BASE, request_params={"max_completion_tokens": 100})
    request = build_request(to, Sampling(), Limits(), MESSAGES)
    assert request.max_tokens == 100
    assert "max_tokens" not in json.loads(request.body)


@pytest.mark.parametrize(
    "params", [{"model": "x"}, {"messages": []}, {"n": 2}, {"max_tokens": 0}, {"max_tokens": 5000}]
)
def test_params_that_change_what_is_measured_are_refused(params: dict[str, Any]) -> None:
    with pytest.raises(SrBenchError) as caught:
        _body(**params)
    assert caught.value.field
    assert caught.value.mend


def test_the_same_request_has_the_same_identity_and_odd_text_is_still_json() -> None:
    to = target(BASE + "/")
    messages = [{"role": "user", "content": "half a pair \ud835 and größe"}]
    first = build_request(to, Sampling(), Limits(), messages)
    assert first == build_request(to, Sampling(), Limits(), messages)
    assert first.url == "http://gateway.test/v1/chat/completions"
    assert json.loads(first.body)["messages"] == messages


def test_only_a_session_aware_mom_gets_a_session() -> None:
    def headers(**changes: Any) -> dict[str, str]:
        to = target(BASE, **changes)
        return dict(build_request(to, Sampling(), Limits(), MESSAGES, session_id="s-1").headers)

    assert "x-session-id" not in headers()
    assert "x-session-id" not in headers(kind="mom")
    assert headers(kind="mom", session_mode="session_aware")["x-session-id"] == "s-1"
