"""Keeping an API key out of evidence even where a server echoes it."""

from __future__ import annotations

from dataclasses import replace

from resources.gateway.evidence import Evidence

# Shorter "keys" (EMPTY, none, x) are placeholders and would match ordinary text.
_SECRET_LENGTH = 8


def without_key(evidence: Evidence, key: str | None) -> Evidence | None:
    """`evidence` with every occurrence of `key` overwritten by as many `*`; None if there is none.

    Sizes stay, so the reads still add up. Looks at the whole body, so a key cut by a read is found too.
    """
    if key is None or len(key) < _SECRET_LENGTH:
        return None
    secret = key.encode()
    in_headers = any(key in value for value in evidence.headers.values())
    in_detail = evidence.detail is not None and key in evidence.detail
    if not in_headers and not in_detail and secret not in evidence.body:
        return None
    stars = "*" * len(secret)
    return replace(
        evidence,
        headers={name: value.replace(key, stars) for name, value in evidence.headers.items()},
        detail=evidence.detail.replace(key, stars) if evidence.detail is not None else None,
        body=evidence.body.replace(secret, stars.encode()),
        redacted=True,
    )
