"""Small readings of a response: its media type, and what an error says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from resources.gateway.tolerant_json import decode_json, json_text

_ERROR_CHARS = 500


def media_type(headers: Mapping[str, str]) -> str:
    """The media type of a response in lower case, without parameters; empty where none was sent."""
    for name, value in headers.items():
        if name.lower() == "content-type":
            return value.partition(";")[0].strip().lower()
    return ""


def is_json(media: str) -> bool:
    """Whether a media type (as `media_type` gives it) is JSON."""
    return media == "application/json" or media.endswith("+json")


def error_text(body: bytes) -> str | None:
    """What an HTTP error's body says, for people."""
    try:
        value = decode_json(body).value
    except ValueError:
        return body.decode(errors="replace").strip()[:_ERROR_CHARS] or None
    if isinstance(value, dict):
        value = cast("dict[str, Any]", value)
        value = value.get("error") or value.get("detail") or value.get("message") or value
    return error_message(value)


def error_message(error: Any) -> str | None:
    """The readable part of an error value: its message, else the value as JSON."""
    if isinstance(error, dict):
        error = cast("dict[str, Any]", error).get("message") or cast("dict[str, Any]", error)
    text = error if isinstance(error, str) else json_text(error)
    return text[:_ERROR_CHARS] or None
