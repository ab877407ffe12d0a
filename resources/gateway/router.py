"""The router's MoM contract: request headers that we send, and the receipt in its response headers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from resources.gateway.tolerant_json import decode_json
from resources.gateway.usage import Usage, normalise_usage
from resources.targets import Target

_COUNT = re.compile("[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class ChildCall:
    """One inference call that the router made on our behalf."""

    model: str | None
    usage: Usage
    raw_usage: Any = None


@dataclass(frozen=True, slots=True)
class RouterReceipt:
    """What the router said about one call; None where it said nothing."""

    config_hash: str | None = None
    selected_model: str | None = None
    decision: str | None = None
    inference_call_count: int | None = None
    session_phase: str | None = None
    children: tuple[ChildCall, ...] | None = None
    """The child calls of the receipt; None without a readable receipt."""
    complete: bool | None = None
    """Whether it lists every child call: its own word, unless the header that counts them contradicts."""
    problem: str | None = None
    """Why a receipt that was sent cannot be used."""

    def as_dict(self) -> dict[str, Any]:
        """A JSON object for the journal's record of the call."""
        return {
            "config_hash": self.config_hash,
            "selected_model": self.selected_model,
            "decision": self.decision,
            "inference_call_count": self.inference_call_count,
            "session_phase": self.session_phase,
            "children": None
            if self.children is None
            else [{"model": child.model, "usage": child.usage.as_dict()} for child in self.children],
            "complete": self.complete,
            "problem": self.problem,
        }


def router_request_headers(target: Target, session_id: str | None) -> dict[str, str]:
    """Headers that a MoM target wants with each call; none for a single model.

    `session_id` is sent to session-aware targets only.
    """
    if target.kind != "mom":
        return {}
    headers = {"X-VSR-Debug": "true"}
    if target.config_hash is not None:
        headers["X-SR-Bench-Expected-Config-Hash"] = target.config_hash
    if target.max_inference_calls is not None:
        headers["X-SR-Bench-Max-Inference-Calls"] = str(target.max_inference_calls)
    if target.session_mode == "session_aware" and session_id is not None:
        headers["x-session-id"] = session_id
    return headers


def read_receipt(headers: Mapping[str, str]) -> RouterReceipt | None:
    """The receipt in a response's headers (names in any case); None if there is no router header at all."""
    sent = {name.lower(): value for name, value in headers.items()}
    if not any(name.startswith("x-vsr-") or name == "x-sr-bench-config-hash" for name in sent):
        return None
    children, complete, problem = _model_usage(sent.get("x-vsr-model-usage"))
    count_text = sent.get("x-vsr-inference-call-count", "").strip()
    count = int(count_text) if _COUNT.fullmatch(count_text) else None
    if children is not None and count is not None and count != len(children):
        complete = False  # whatever it says: another number of calls was counted than is listed
    return RouterReceipt(
        config_hash=_text(sent, "x-sr-bench-config-hash") or _text(sent, "x-vsr-config-hash"),
        selected_model=_text(sent, "x-vsr-selected-model"),
        decision=_text(sent, "x-vsr-selected-decision"),
        inference_call_count=count,
        session_phase=_text(sent, "x-vsr-session-phase"),
        children=children,
        complete=complete,
        problem=problem,
    )


def _text(headers: Mapping[str, str], name: str) -> str | None:
    return headers.get(name, "").strip() or None


def _model_usage(text: str | None) -> tuple[tuple[ChildCall, ...] | None, bool | None, str | None]:
    """Children, completeness and problem of an `x-vsr-model-usage` header."""
    if text is None:
        return None, None, None
    try:
        receipt: Any = decode_json(text.encode(errors="surrogateescape")).value
    except ValueError:
        return None, None, "the receipt is not JSON"
    if not isinstance(receipt, dict):
        return None, None, "the receipt is not an object"
    receipt = cast("dict[str, Any]", receipt)
    if receipt.get("version") != 1:
        return None, None, "the receipt has a version other than 1"
    calls = receipt.get("calls")
    if not isinstance(calls, list):
        return None, None, "the receipt has no list of calls"
    children: list[ChildCall] = []
    for call in cast("list[Any]", calls):
        if not isinstance(call, dict):
            return None, None, "a call in the receipt is not an object"
        call = cast("dict[str, Any]", call)
        model = call.get("model")
        children.append(
            ChildCall(
                model if isinstance(model, str) and model else None,
                normalise_usage(call.get("usage")),
                call.get("usage"),
            )
        )
    return tuple(children), receipt.get("complete") is True, None
