"""The lab over real HTTP: replies, streams, faults, router, counters."""

from __future__ import annotations

import http.client
import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from resources.canonical import content_hash
from tests.resources.lab.conftest import case_row
from tests.servers.lab import RunningLab, lab_config

Start = Callable[..., RunningLab]


def post(url: str, body: Any, headers: dict[str, str] | None = None) -> tuple[int, dict[str, str], bytes]:
    """Status, lower-case headers and raw body of a JSON POST; error statuses do not raise."""
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    for name, value in (headers or {}).items():
        request.add_header(name, value)
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.status, {k.lower(): v for k, v in response.headers.items()}, response.read()
    except urllib.error.HTTPError as error:
        return error.code, {k.lower(): v for k, v in error.headers.items()}, error.read()


def ask(lab: RunningLab, model: str, number: int, **more: Any) -> tuple[int, dict[str, str], bytes]:
    headers = more.pop("headers", None)
    body = {"model": model, "messages": case_row(number)["messages"], **more}
    return post(f"{lab.base_url}/chat/completions", body, headers)


def reply(lab: RunningLab, model: str, number: int, **more: Any) -> dict[str, Any]:
    status, headers, raw = ask(lab, model, number, **more)
    assert status == 200, raw
    assert headers["x-sr-bench-lab"] == "1"
    return json.loads(raw)


def events(raw: bytes) -> list[Any]:
    payloads = re.findall(rb"^data: ?(.*?)\r?$", raw, re.MULTILINE)
    return [json.loads(payload) if payload != b"[DONE]" else "[DONE]" for payload in payloads]


def text_of(stream: list[Any]) -> str:
    choices = [choice for event in stream if event != "[DONE]" for choice in event.get("choices") or []]
    return "".join(choice["delta"].get("content") or "" for choice in choices)


def letter(text: str) -> str | None:
    found = re.search(r"Answer: ([A-J])$", text)
    return found[1] if found else None


def one_model(**changes: Any) -> dict[str, Any]:
    return {
        "version": "sr-bench-lab-1",
        "time_scale": 0,
        "models": {"lab-m": {"competence": {"default": 1}, **changes}},
    }


def test_streamed_and_whole_replies_agree(lab_server: Start, cases_path: Path) -> None:
    lab = lab_server(lab_config(), [cases_path])
    for number in range(5):
        whole = reply(lab, "lab-large", number)
        _, headers, raw = ask(lab, "lab-large", number, stream=True, stream_options={"include_usage": True})
        stream = events(raw)
        assert headers["content-type"].startswith("text/event-stream")
        assert headers["x-sr-bench-lab-case"] == "known"
        assert text_of(stream) == whole["choices"][0]["message"]["content"]
        assert stream[-1] == "[DONE]"
        assert stream[-2]["choices"] == []
        assert stream[-2]["usage"]["completion_tokens"] == whole["usage"]["completion_tokens"]
        assert stream[-3]["choices"][0]["finish_reason"] == "stop"
    _, _, raw = ask(lab, "lab-large", 1, stream=True)
    assert not any("usage" in event for event in events(raw) if event != "[DONE]"), "usage only on request"


def test_same_seed_same_answers_and_competence_is_met(lab_server: Start, cases_path: Path) -> None:
    config = lab_config()
    config["models"]["lab-large"]["competence"] = {"default": 0.8, "law": 0}
    first, second = lab_server(config, [cases_path]), lab_server(config, [cases_path])
    right: dict[str, list[bool]] = {}
    for number in range(400):
        text = reply(first, "lab-large", number)["choices"][0]["message"]["content"]
        if number % 20 == 0:
            assert text == reply(second, "lab-large", number)["choices"][0]["message"]["content"]
        case = case_row(number)
        right.setdefault(case["category"], []).append(letter(text) == case["reference"]["answer"])
    assert not any(right["law"])
    others = [hit for category, hits in right.items() if category != "law" for hit in hits]
    assert 0.72 < sum(others) / len(others) < 0.88


def test_unknown_question_gets_no_answer_and_unknown_model_404(lab_server: Start, cases_path: Path) -> None:
    lab = lab_server(lab_config(), [cases_path])
    body = {"model": "lab-small", "messages": [{"role": "user", "content": "Who are you?"}]}
    _, headers, raw = post(f"{lab.base_url}/chat/completions", body)
    assert headers["x-sr-bench-lab-case"] == "unknown"
    assert "simulation" in json.loads(raw)["choices"][0]["message"]["content"]
    status, _, raw = ask(lab, "gpt-9", 0)
    assert status == 404
    assert "lab-small" in json.loads(raw)["error"]["message"]
    assert post(f"{lab.base_url}/chat/completions", [1])[0] == 400


def test_router_headers_hash_preview_and_config(lab_server: Start, cases_path: Path) -> None:
    lab = lab_server(lab_config(), [cases_path])
    target = next(target for target in lab.targets if target["kind"] == "mom")
    selected = set()
    for number in range(40):
        _, headers, raw = ask(lab, "lab-router", number)
        assert headers["x-sr-bench-config-hash"] == target["config_hash"]
        assert headers["x-vsr-inference-call-count"] == "1"
        assert json.loads(raw)["model"] == headers["x-vsr-selected-model"]
        selected.add((headers["x-vsr-selected-decision"], headers["x-vsr-selected-model"]))
        preview = {
            "model": "lab-router",
            "messages": case_row(number)["messages"],
            "options": {"trace": True},
        }
        previewed = json.loads(post(target["preview_url"], preview)[2])
        assert previewed["selected_model"] == headers["x-vsr-selected-model"]
        assert previewed["config_hash"] == target["config_hash"]
    assert selected == {("hard-science", "lab-large"), ("everything-else", "lab-small")}
    with urllib.request.urlopen(f"{lab.url}/api/v1/config") as response:
        assert response.headers["etag"] == f'"{target["config_hash"]}"'
        assert content_hash(json.load(response)) == target["config_hash"]
    with urllib.request.urlopen(f"{lab.url}/api/v1/config/hash") as response:
        assert json.load(response)["active_runtime_hash"] == target["config_hash"]


def test_compound_route_sends_a_receipt(lab_server: Start, cases_path: Path) -> None:
    config = lab_config()
    config["routers"]["lab-router"] = {"default": {"name": "panel", "calls": ["lab-small", "lab-large"]}}
    lab = lab_server(config, [cases_path])
    _, headers, raw = ask(lab, "lab-router", 3)
    body = json.loads(raw)
    receipt = json.loads(headers["x-vsr-model-usage"])
    assert receipt["complete"] is True
    assert [call["model"] for call in receipt["calls"]] == ["lab-small", "lab-large"]
    total = sum(call["usage"]["completion_tokens"] for call in receipt["calls"])
    assert body["usage"]["completion_tokens"] == total
    status, _, raw = ask(lab, "lab-router", 3, headers={"X-SR-Bench-Max-Inference-Calls": "1"})
    assert (status, json.loads(raw)["error"]["code"]) == (422, "max_inference_calls")


def test_refusals_by_rate_end_and_are_counted(lab_server: Start, cases_path: Path) -> None:
    lab = lab_server(
        one_model(faults=[{"kind": "rate_limit", "rate": 0.5, "retry_after_s": 1}]), [cases_path]
    )
    refused = 0
    for number in range(60):
        for _ in range(30):
            status, headers, _ = ask(lab, "lab-m", number)
            if status == 200:
                break
            assert status == 429
            assert headers["retry-after"] == "1"
            refused += 1
        else:
            raise AssertionError("never accepted")
    stats = lab.stats()
    assert 30 < refused < 120
    assert (stats["refused"], stats["completed"], stats["resends"]) == (refused, 60, 0)
    assert stats["repeats_after_refusal"] == refused
    ask(lab, "lab-m", 0)
    assert lab.stats()["resends"] == 1
    lab.reset()
    assert lab.stats()["requests"] == 0


def test_faults_by_index(lab_server: Start, cases_path: Path) -> None:
    faults = [
        {"kind": "http_error", "status": 500, "requests": [1]},
        {"kind": "unavailable", "requests": [2], "retry_after_s": None},
        {"kind": "reset", "requests": [3]},
        {"kind": "cut", "requests": [4, 5], "after_events": 1},
        {"kind": "error_event", "requests": [6]},
        {"kind": "invalid_json", "requests": [7]},
        {"kind": "repeat", "requests": [8], "events": 50},
    ]
    lab = lab_server(one_model(faults=faults), [cases_path])
    assert ask(lab, "lab-m", 1)[0] == 500
    status, headers, _ = ask(lab, "lab-m", 2)
    assert status == 503
    assert "retry-after" not in headers
    with pytest.raises((http.client.RemoteDisconnected, ConnectionError, urllib.error.URLError)):
        ask(lab, "lab-m", 3)
    for stream in (True, False):
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            ask(lab, "lab-m", 4, stream=stream)
    assert b'"error"' in ask(lab, "lab-m", 6, stream=True)[2]
    with pytest.raises(ValueError):
        events(ask(lab, "lab-m", 7, stream=True)[2])
    assert text_of(events(ask(lab, "lab-m", 8, stream=True)[2])).count("on and on") == 50
    assert ask(lab, "lab-m", 9)[0] == 200
    assert [record["outcome"] for record in lab.requests()] == ["failed"] * 6 + ["completed"] * 3


def test_stall_ends_when_the_client_leaves(lab_server: Start, cases_path: Path) -> None:
    lab = lab_server(one_model(faults=[{"kind": "stall", "always": True}]), [cases_path])
    connection = http.client.HTTPConnection(lab.url.removeprefix("http://"), timeout=5)
    body = {"model": "lab-m", "stream": True, "messages": case_row(0)["messages"]}
    connection.request("POST", "/v1/chat/completions", json.dumps(body), {"content-type": "application/json"})
    response = connection.getresponse()
    assert response.readline().startswith(b"data: ")
    assert lab.stats()["inflight"] == 1
    connection.sock.close()
    response.close()
    for _ in range(100):
        if lab.stats()["disconnected"] == 1:
            break
        time.sleep(0.02)
    assert lab.stats()["inflight"] == 0


def test_own_rate_limit_and_max_tokens(lab_server: Start, cases_path: Path) -> None:
    lab = lab_server(one_model(rate_limit={"requests_per_minute": 3}), [cases_path])
    cut = reply(lab, "lab-m", 0, max_tokens=5)
    assert cut["choices"][0]["finish_reason"] == "length"
    assert cut["usage"]["completion_tokens"] == 5
    statuses = [ask(lab, "lab-m", number)[0] for number in range(1, 5)]
    assert statuses == [200, 200, 429, 429]
    assert lab.stats()["models"]["lab-m"]["max_in_60_s"] == 5


def test_prefix_cache_counts_repeated_beginnings(lab_server: Start, cases_path: Path) -> None:
    cache = {"block_tokens": 16, "min_tokens": 32, "report_writes": True}
    lab = lab_server(one_model(prefix_cache=cache), [cases_path])
    first, second = reply(lab, "lab-m", 0)["usage"], reply(lab, "lab-m", 0)["usage"]
    assert first["prompt_tokens_details"]["cached_tokens"] == 0
    written = first["prompt_tokens_details"]["cache_write_tokens"]
    assert second["prompt_tokens_details"]["cached_tokens"] == written > 0
    assert second["prompt_tokens"] == first["prompt_tokens"]


def test_key_is_asked_for(lab_server: Start, cases_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_TEST_KEY", "key-of-the-test")
    lab = lab_server(one_model() | {"api_key_env": "LAB_TEST_KEY"}, [cases_path])
    status, headers, raw = ask(lab, "lab-m", 0)
    assert status == 401
    assert headers["x-sr-bench-lab"] == "1"
    assert b"key-of-the-test" not in raw
    assert ask(lab, "lab-m", 0, headers={"authorization": "Bearer key-of-the-test"})[0] == 200
