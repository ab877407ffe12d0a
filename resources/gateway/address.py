"""The head of a POST request, and where it goes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from yarl import URL

from resources.gateway.pool import Origin


class PostAddress(NamedTuple):
    """A URL taken apart for sending."""

    origin: Origin
    start: bytes
    """Request line and Host header."""


@lru_cache(maxsize=256)
def post_address(url: str) -> PostAddress:
    """Where a POST to `url` goes. Raises `ValueError` for a URL that is not http(s) or names no host."""
    parts = URL(url)
    if parts.scheme not in ("http", "https") or not parts.raw_host or parts.port is None:
        raise ValueError(f"{url!r} is not an http or https address")
    origin = Origin(parts.scheme == "https", parts.raw_host, parts.port)
    start = f"POST {parts.raw_path_qs} HTTP/1.1\r\nHost: {parts.host_port_subcomponent}\r\n"
    return PostAddress(origin, start.encode("ascii"))


def request_head(
    address: PostAddress, headers: Mapping[str, str], api_key: str | None, body_size: int
) -> bytes:
    """Request line and headers, with the empty line after them.

    Raises `ValueError` for a header that would end early.
    """
    lines = [f"{name}: {value}" for name, value in headers.items()]
    if api_key is not None:
        lines.append(f"Authorization: Bearer {api_key}")
    lines.append(f"Content-Length: {body_size}")
    for line in lines:
        if "\n" in line or "\r" in line or "\0" in line:
            # Its value may be the key: only the name is told.
            raise ValueError(f"the header {line.partition(':')[0]} holds a line end or NUL")
    return address.start + "\r\n".join(lines).encode() + b"\r\n\r\n"
