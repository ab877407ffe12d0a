"""What a target must fulfil beyond its types: addresses without secrets, the bindings of a MoM entrypoint."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from resources.errors import SrBenchError
from resources.targets import Target

PREVIEW_PATH = "/api/v1/routing/preview"
OWNED_PARAMETERS = ("model", "messages", "stream_options")
"""Request members that sr-bench itself sets."""
SECRET_NAMES = re.compile(
    r"^(api[-_]?key|authorization|access[-_]?token|auth[-_]?token|password|secret|(extra_)?headers)$"
)


def target_problems(target: Target, path: str = "") -> list[SrBenchError]:
    """All that is wrong with `target` taken by itself; `path` is where it stands (`targets[0]`)."""
    problems = url_problems(target.base_url, _at(path, "base_url"))
    if target.base_url.rstrip("/").endswith("/chat/completions"):
        problems.append(
            SrBenchError(
                "base_url must end before /chat/completions.",
                field=_at(path, "base_url"),
                mend="Give the API's root, for example https://host.example/v1.",
            )
        )
    if target.preview_url is not None:
        problems += url_problems(target.preview_url, _at(path, "preview_url"))
    problems += _price_problems(target, path) + parameter_problems(
        target.request_params, _at(path, "request_params")
    )
    return problems + (
        _mom_problems(target, path) if target.kind == "mom" else _single_problems(target, path)
    )


def url_problems(url: str, field: str) -> list[SrBenchError]:
    """What is wrong with an endpoint's address. It is never repeated: it may hold a secret."""
    problems: list[SrBenchError] = []

    def add(message: str, mend: str) -> None:
        problems.append(SrBenchError(message, field=field, mend=mend))

    if len(url) > 2048 or re.search(r"[\x00-\x20\x7f\\]", url):
        add(
            "The URL has blanks, control characters, backslashes or over 2048 characters.",
            "Write a plain URL.",
        )
        return problems
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        add("The URL's host or port is malformed.", "Write for example http://127.0.0.1:8000/v1.")
        return problems
    if parts.scheme not in ("http", "https") or not host:
        add("The URL needs http:// or https:// and a host.", "Write for example http://127.0.0.1:8000/v1.")
    if port == 0:
        add("The URL's port must be 1 to 65535.", "Give the port the server listens on.")
    if "@" in parts.netloc:
        add(
            "The URL carries credentials.",
            "Remove them; name an environment variable in api_key_env instead.",
        )
    if "?" in url or "#" in url:
        add(
            "The URL carries a query or a fragment.", "Remove it; put the key's variable name in api_key_env."
        )
    return problems


def parameter_problems(parameters: dict[str, Any], path: str) -> list[SrBenchError]:
    """What is wrong with a target's `request_params`."""
    problems: list[SrBenchError] = []
    for name, value in parameters.items():
        field = _at(path, name)
        if name in OWNED_PARAMETERS:
            problems.append(SrBenchError(f"{name} is set by sr-bench.", field=field, mend="Remove it here."))
        elif SECRET_NAMES.match(name.lower()):
            problems.append(
                SrBenchError(
                    "Credentials and headers do not belong in a request's parameters.",
                    field=field,
                    mend="Name an environment variable in api_key_env.",
                )
            )
        elif name == "n" and value != 1:
            problems.append(SrBenchError("n must be 1: one answer per call.", field=field, mend="Remove it."))
        elif name == "stream" and not isinstance(value, bool):
            problems.append(
                SrBenchError("stream must be true or false.", field=field, mend="Write true or false.")
            )
        elif name in ("max_tokens", "max_completion_tokens") and (
            not isinstance(value, int) or isinstance(value, bool) or value < 1
        ):
            problems.append(
                SrBenchError(
                    f"{name} must be a whole number of at least 1.", field=field, mend="Write such a number."
                )
            )
    if "max_tokens" in parameters and "max_completion_tokens" in parameters:
        problems.append(
            SrBenchError(
                "max_tokens and max_completion_tokens exclude each other.", field=path, mend="Keep one."
            )
        )
    return problems


def _price_problems(target: Target, path: str) -> list[SrBenchError]:
    if target.prices is None:
        return []
    field = _at(path, "prices")
    if not target.prices:
        return [
            SrBenchError("prices names no model.", field=field, mend="Price a model, or leave prices out.")
        ]
    expected = target.expected_response_model
    if expected is not None and expected not in target.prices:
        return [
            SrBenchError(
                "prices lacks the expected_response_model.",
                field=field,
                mend="Key prices by the model name that responses carry.",
            )
        ]
    return []


def _mom_problems(target: Target, path: str) -> list[SrBenchError]:
    problems: list[SrBenchError] = []
    if target.config_hash is None:
        problems.append(
            SrBenchError(
                "A MoM target must name the router configuration it stands for.",
                code="missing_field",
                field=_at(path, "config_hash"),
                mend="Set config_hash to the router's active_runtime_hash (GET /api/v1/config/hash).",
            )
        )
    elif not re.fullmatch(r"[\x21-\x7e]{1,256}", target.config_hash):
        problems.append(
            SrBenchError(
                "config_hash must be 1 to 256 visible ASCII characters: it travels in a header.",
                field=_at(path, "config_hash"),
                mend="Copy the router's active_runtime_hash.",
            )
        )
    if target.capture_recipe and not (target.preview_url or "").endswith(PREVIEW_PATH):
        problems.append(
            SrBenchError(
                f"capture_recipe needs the router's preview_url, which ends in {PREVIEW_PATH}.",
                field=_at(path, "preview_url"),
                mend="Set preview_url, or leave capture_recipe out.",
            )
        )
    return problems


def _single_problems(target: Target, path: str) -> list[SrBenchError]:
    given = {
        "config_hash": target.config_hash is not None,
        "preview_url": target.preview_url is not None,
        "preview_api_key_env": target.preview_api_key_env is not None,
        "max_inference_calls": target.max_inference_calls is not None,
        "capture_recipe": target.capture_recipe,
        "session_mode": target.session_mode != "stateless",
    }
    return [
        SrBenchError(
            f"{name} belongs to MoM targets only.", field=_at(path, name), mend="Remove it, or set kind: mom."
        )
        for name, present in given.items()
        if present
    ]


def _at(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
