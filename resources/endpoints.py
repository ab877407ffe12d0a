"""Whether the targets' endpoints answer: one `GET <base_url>/models` each, which costs nothing."""

from __future__ import annotations

import contextlib
import http.client
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from resources.errors import Unavailable
from resources.targets import Target

TIMEOUT_S = 5.0
MAX_BODY = 4 * 1024 * 1024


@dataclass(frozen=True)
class EndpointState:
    """What one endpoint said.

    `ok`: answers; `unlisted`: answers, but does not list the model (some gateways list only part);
    `unauthorised`: refuses our key; `unreachable`: no HTTP answer, a redirect or a server error.
    """

    target_id: str
    state: Literal["ok", "unlisted", "unauthorised", "unreachable"]
    detail: str

    @property
    def usable(self) -> bool:
        return self.state in ("ok", "unlisted")


def check_endpoints(
    targets: Iterable[Target], env: Mapping[str, str], timeout_s: float = TIMEOUT_S
) -> list[EndpointState]:
    """Ask all endpoints for their models at once, `timeout_s` seconds each; failures are states."""
    asked = list(targets)
    with ThreadPoolExecutor(max_workers=min(len(asked), 16) or 1) as threads:
        return list(threads.map(lambda target: _check(target, env, timeout_s), asked))


def require_endpoints(
    targets: Iterable[Target], env: Mapping[str, str], timeout_s: float = TIMEOUT_S
) -> None:
    """Raise `Unavailable`, naming every endpoint that cannot be used and why."""
    bad = [state for state in check_endpoints(targets, env, timeout_s) if not state.usable]
    if not bad:
        return
    code = "unauthorised" if all(state.state == "unauthorised" for state in bad) else "unreachable_endpoint"
    raise Unavailable(
        f"{len(bad)} endpoint(s) cannot be used: "
        + "; ".join(f"{s.target_id}: {s.detail}" for s in bad)
        + ".",
        code=code,
        field="targets",
        mend="Start the server, or correct base_url and the key's environment variable. Nothing was sent.",
    )


def _check(target: Target, env: Mapping[str, str], timeout_s: float) -> EndpointState:
    # http.client: this runs in commands, where importing the gateway's HTTP library would cost a quarter second.
    key = env.get(target.api_key_env, "").strip() if target.api_key_env else ""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    url = urlsplit(f"{target.base_url.rstrip('/')}/models")
    kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    try:
        connection = kind(url.hostname or "", url.port, timeout=timeout_s)
        with contextlib.closing(connection):
            connection.request("GET", url.path, headers=headers)
            response = connection.getresponse()
            status = response.status
            body = response.read(MAX_BODY) if status == 200 else b""
    except TimeoutError:
        return EndpointState(target.id, "unreachable", f"no answer within {timeout_s:g} s")
    except (http.client.HTTPException, OSError, ValueError) as error:
        # The exception's text may repeat headers; its kind says enough.
        cause = error.strerror if isinstance(error, OSError) else None
        return EndpointState(target.id, "unreachable", cause or type(error).__name__)
    if status in (401, 403):
        return EndpointState(target.id, "unauthorised", f"the endpoint refuses the key (HTTP {status})")
    if 300 <= status < 400:
        # Calls follow no redirects: they would carry the key to another address.
        return EndpointState(target.id, "unreachable", f"the address redirects (HTTP {status})")
    if status >= 500:
        return EndpointState(target.id, "unreachable", f"server error (HTTP {status})")
    listed = _model_ids(body)
    if listed and target.model not in listed:
        return EndpointState(
            target.id, "unlisted", f"{target.model} is not among the {len(listed)} listed models"
        )
    return EndpointState(target.id, "ok", f"HTTP {status}")


def _model_ids(body: bytes) -> set[str]:
    """Model ids of an OpenAI-style list; empty for anything else."""
    import orjson

    try:
        data: Any = orjson.loads(body)
    except orjson.JSONDecodeError:
        return set()
    rows = data.get("data") if isinstance(data, dict) else None
    return (
        {row["id"] for row in rows if isinstance(row, dict) and isinstance(row.get("id"), str)}
        if isinstance(rows, list)
        else set()
    )
