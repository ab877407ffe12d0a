"""Keeping an API key out of evidence even where a server echoes it."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from resources.gateway.evidence import Evidence, rebuild_reply
from resources.gateway.record import Reply
from resources.gateway.tolerant_json import json_text

# Shorter "keys" (EMPTY, none, x) are placeholders and would match ordinary text.
_SECRET_LENGTH = 8


def without_key(evidence: Evidence, reply: Reply, key: str | None) -> tuple[Evidence, Reply] | None:
    """`evidence` with every occurrence of `key` overwritten by as many `*`, and the reply it gives; None if there is
    none.

    Sizes stay, so the reads still add up. Looks at the whole body, so a key cut by a read is found too, and so is one
    that is written with JSON's escapes. Where the reply shows a key that cannot be found in the bytes (compressed, or
    spread over several events), the whole body is withheld.
    """
    if key is None or len(key) < _SECRET_LENGTH:
        return None
    secret = key.encode()
    in_headers = any(key in value for value in evidence.headers.values())
    in_detail = evidence.detail is not None and key in evidence.detail
    shown = _shows(reply, key)
    if not in_headers and not in_detail and not shown and secret not in evidence.body:
        return None
    stars = "*" * len(secret)
    body = evidence.body.replace(secret, stars.encode())
    if shown:
        body = _escaped(key).sub(lambda found: b"*" * len(found[0]), body)
    clean = replace(
        evidence,
        headers={name: value.replace(key, stars) for name, value in evidence.headers.items()},
        detail=evidence.detail.replace(key, stars) if evidence.detail is not None else None,
        body=body,
        redacted=True,
    )
    rebuilt = rebuild_reply(clean)
    if _shows(rebuilt, key):
        clean = replace(clean, body=b"*" * len(clean.body))
        rebuilt = rebuild_reply(clean)
    return clean, rebuilt


def _shows(reply: Reply, key: str) -> bool:
    texts = (reply.text, reply.reasoning, reply.error_message, reply.model, reply.finish_reason)
    if any(text is not None and key in text for text in texts):
        return True
    # As JSON escapes it, for it stands in JSON text here.
    return bool(reply.tool_calls) and json_text(key)[1:-1] in json_text(
        [dict(call) for call in reply.tool_calls]
    )


@lru_cache(maxsize=16)
def _escaped(key: str) -> re.Pattern[bytes]:
    """The key as it may be written in a JSON string."""
    units: list[str] = []
    for character in key:
        codes = character.encode("utf-16-be")
        numbered = "".join(f"\\\\u(?i:{codes[at : at + 2].hex()})" for at in range(0, len(codes), 2))
        plain = re.escape(character)
        units.append(
            f"(?:{plain}|\\\\{plain}|{numbered})" if character in '"\\/' else f"(?:{plain}|{numbered})"
        )
    return re.compile("".join(units).encode())
