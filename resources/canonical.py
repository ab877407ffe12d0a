"""Content identity: canonical JSON and SHA-256 digests."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import rfc8785


def sha256_bytes(data: bytes) -> str:
    """Lower-case hex SHA-256 of `data`."""
    return hashlib.sha256(data).hexdigest()


def canonical_bytes(value: Any) -> bytes:
    """`value` (JSON types only) as canonical JSON by RFC 8785 (JSON Canonicalization Scheme).

    Raises `rfc8785.CanonicalizationError` for values that have no canonical form (NaN, integers beyond 2**53).
    """
    return rfc8785.dumps(value)


def content_hash(value: Any) -> str:
    """Hex SHA-256 of the canonical JSON of `value`: the identity of every artifact that is a JSON document."""
    return sha256_bytes(canonical_bytes(value))


def selection_json(value: Any) -> str:
    """Canonical JSON of the case selection rule: sorted keys, compact separators, non-ASCII kept.

    Other than RFC 8785 only in number and key-order corner cases; kept apart because it decides which cases are
    selected, and so must stay equal to that of other implementations for ever.
    """
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def selection_hash(value: Any) -> str:
    """Hex SHA-256 of the UTF-8 bytes of `selection_json(value)`."""
    return sha256_bytes(selection_json(value).encode())
