"""Evidence of one call: the response as it arrived, in one zstd frame that can be read on its own.

Uncompressed, a frame is `SRE1`, the length of the header as a 4-byte big-endian number, the header (one JSON
object) and the raw bytes of the body (transfer coding removed, nothing else done to them).
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, cast

import orjson
import zstandard

from resources.errors import IntegrityError
from resources.gateway.record import End, Reply, Verdict, no_response
from resources.gateway.reply import ReplyBuilder

_MAGIC = b"SRE1"
# Of the response headers only these are kept: diagnosis, limits, the router's word. Never cookies.
_KEPT_HEADERS = frozenset(
    {
        "content-type",
        "content-length",
        "content-encoding",
        "date",
        "retry-after",
        "server",
        "via",
        "x-request-id",
        "request-id",
        "cf-ray",
        "openai-processing-ms",
        "openai-version",
        "x-envoy-upstream-service-time",
    }
)
_KEPT_PREFIXES = ("x-vsr-", "x-sr-bench-", "x-ratelimit-", "ratelimit", "anthropic-ratelimit-")


@dataclass(frozen=True, slots=True)
class Evidence:
    """One call's response with its timing."""

    request_sha256: str
    started_at: float
    """Seconds since the epoch, just before sending began."""
    http_status: int | None
    """None: no response head arrived."""
    headers: Mapping[str, str]
    """The kept response headers, names in lower case."""
    headers_us: int | None
    """Microseconds from the start to the response head."""
    read_sizes: Sequence[int]
    """Bytes of each network read of the body, in order."""
    read_us: Sequence[int]
    """Microseconds from the start to each read."""
    end: End
    """How the transport ended, or who stopped the call."""
    verdict: Verdict | None = field(default=None, kw_only=True)
    """The limit of ours that the reply broke, if any."""
    end_us: int
    never_sent: bool
    """No byte of the request's body left this machine."""
    detail: str | None
    """The transport's own words about a failure."""
    redacted: bool
    """The server echoed the API key: its bytes are overwritten with `*`."""
    body: bytes = field(repr=False)

    def reads(self) -> Iterator[bytes]:
        """The body, cut as it arrived."""
        at = 0
        for size in self.read_sizes:
            yield self.body[at : at + size]
            at += size


def kept_headers(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """The response headers that evidence keeps (names in lower case); repeated ones joined by a comma."""
    kept: dict[str, str] = {}
    for raw, value in headers:
        name = _kept_name(raw)
        if name is not None:
            try:
                text = value.decode()
            except UnicodeDecodeError:
                text = value.decode("latin-1")
            kept[name] = f"{kept[name]}, {text}" if name in kept else text
    return kept


@lru_cache(maxsize=512)
def _kept_name(raw: bytes) -> str | None:
    name = raw.decode("latin-1")
    return name if name in _KEPT_HEADERS or name.startswith(_KEPT_PREFIXES) else None


def evidence_frame(evidence: Evidence) -> bytes:
    """The uncompressed frame; its SHA-256 is the evidence's identity, whatever the compressor."""
    header = orjson.dumps(
        {
            "v": 1,
            "request_sha256": evidence.request_sha256,
            "started_at": evidence.started_at,
            "http_status": evidence.http_status,
            "headers": dict(evidence.headers),
            "headers_us": evidence.headers_us,
            "read_sizes": list(evidence.read_sizes),
            "read_us": list(evidence.read_us),
            "end": evidence.end,
            "verdict": evidence.verdict,
            "end_us": evidence.end_us,
            "never_sent": evidence.never_sent,
            "detail": evidence.detail,
            "redacted": evidence.redacted,
        }
    )
    return b"".join((_MAGIC, len(header).to_bytes(4, "big"), header, evidence.body))


def encode_evidence(evidence: Evidence, *, level: int = 3) -> tuple[bytes, str]:
    """The compressed frame, and the hex SHA-256 of the uncompressed one."""
    frame = evidence_frame(evidence)
    return _compressor(level).compress(frame), hashlib.sha256(frame).hexdigest()


def decode_evidence(data: bytes, *, sha256: str | None = None) -> Evidence:
    """Read a compressed frame; with `sha256` its identity is verified. Raises `IntegrityError`."""
    try:
        frame = _decompressor().decompress(data)
    except zstandard.ZstdError as error:
        raise IntegrityError(f"evidence cannot be decompressed: {error}", field="evidence") from error
    if sha256 is not None and hashlib.sha256(frame).hexdigest() != sha256:
        raise IntegrityError(f"evidence is not the bytes known as {sha256}", field="evidence")
    size = int.from_bytes(frame[4:8], "big")
    try:
        header = cast("dict[str, Any]", orjson.loads(frame[8 : 8 + size]))
    except orjson.JSONDecodeError as error:
        raise IntegrityError("evidence has no readable header", field="evidence") from error
    if frame[:4] != _MAGIC or header.get("v") != 1:
        raise IntegrityError("evidence has an unknown format", field="evidence")
    body = frame[8 + size :]
    if sum(header["read_sizes"]) != len(body):
        raise IntegrityError("evidence's reads do not add up to its body", field="evidence")
    return Evidence(**{name: value for name, value in header.items() if name != "v"}, body=body)


def rebuild_reply(evidence: Evidence) -> Reply:
    """Derive the record again from the evidence alone; equals the one derived live."""
    if evidence.http_status is None:
        return no_response(evidence.end, evidence.detail)
    builder = ReplyBuilder(evidence.http_status, evidence.headers)
    for chunk in evidence.reads():
        builder.feed(chunk)
    return builder.finish(evidence.end, evidence.verdict)


_kept = threading.local()


def _compressor(level: int) -> zstandard.ZstdCompressor:
    """One compressor a thread and level: making it costs more than compressing a short reply."""
    compressor: zstandard.ZstdCompressor | None = getattr(_kept, f"level_{level}", None)
    if compressor is None:
        compressor = zstandard.ZstdCompressor(level=level)
        setattr(_kept, f"level_{level}", compressor)
    return compressor


def _decompressor() -> zstandard.ZstdDecompressor:
    """One decompressor a thread."""
    decompressor: zstandard.ZstdDecompressor | None = getattr(_kept, "decompressor", None)
    if decompressor is None:
        decompressor = _kept.decompressor = zstandard.ZstdDecompressor()
    return decompressor
