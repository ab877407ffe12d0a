"""Endpoint checks against real sockets: one GET per target, nothing generated."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from resources.endpoints import check_endpoints, require_endpoints
from resources.errors import Unavailable
from resources.targets import Target
from tests.planning import single


class _Models(BaseHTTPRequestHandler):
    """`/ok`, `/locked` (needs the key), `/broken`, `/moved` and `/plain`, each with `/v1/models`."""

    requests: list[str]

    def do_GET(self) -> None:
        self.requests.append(self.path)
        kind = self.path.split("/")[1]
        status, body = 200, json.dumps({"data": [{"id": "small-1"}, {"id": 3}, None]}).encode()
        if kind == "locked" and self.headers.get("Authorization") != "Bearer right":
            status = 401
        elif kind in ("broken", "moved", "absent"):
            status = {"broken": 503, "moved": 302, "absent": 404}[kind]
        elif kind == "plain":
            body = b"hello"
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if status == 302:
            self.send_header("Location", "/ok/v1/models")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        del format, args


@pytest.fixture
def server() -> Iterator[tuple[str, list[str]]]:
    handler = type("Handler", (_Models,), {"requests": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{listening.server_port}", handler.requests
        listening.shutdown()


def _target(base_url: str, **members: Any) -> Target:
    return Target.model_validate(single(base_url=base_url, **members))


def test_states(server: tuple[str, list[str]]) -> None:
    url, requests = server
    kinds = ["ok", "locked", "broken", "moved", "absent", "plain"]
    states = check_endpoints([_target(f"{url}/{kind}/v1/", id=kind) for kind in kinds], {})
    assert {state.target_id: state.state for state in states} == {
        "ok": "ok",
        "locked": "unauthorised",
        "broken": "unreachable",
        "moved": "unreachable",
        "absent": "ok",
        "plain": "ok",
    }
    assert sorted(requests) == sorted(f"/{kind}/v1/models" for kind in kinds)
    (unlisted,) = check_endpoints([_target(f"{url}/ok/v1", model="other")], {})
    assert (unlisted.state, unlisted.usable) == ("unlisted", True)


def test_the_key_is_sent_and_never_shown(server: tuple[str, list[str]]) -> None:
    url, _ = server
    target = _target(f"{url}/locked/v1", api_key_env="KEY")
    require_endpoints([target], {"KEY": "right"})
    with pytest.raises(Unavailable) as caught:
        require_endpoints([target], {"KEY": "wrong-secret\n"})
    assert caught.value.code == "unauthorised"
    assert "wrong-secret" not in str(caught.value.as_dict())


def test_unreachable(server: tuple[str, list[str]]) -> None:
    url, _ = server
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nobody = _target(f"http://127.0.0.1:{closed.getsockname()[1]}/v1", id="nobody")
        with pytest.raises(Unavailable) as caught:
            require_endpoints([nobody, _target(f"{url}/broken/v1", id="broken"), _target(f"{url}/ok/v1")], {})
    assert caught.value.exit_code == 4
    assert "2 endpoint(s)" in caught.value.message
    assert "nobody" in caught.value.message
    assert "broken" in caught.value.message


def test_silence_ends_after_the_timeout() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        (state,) = check_endpoints([_target(f"http://127.0.0.1:{silent.getsockname()[1]}/v1")], {}, 0.2)
    assert (state.state, state.detail) == ("unreachable", "no answer within 0.2 s")
