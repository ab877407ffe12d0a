"""A second reading of the stream rules, written for plainness alone: whole body at once, standard library only.

Shares no code with the product, so that a fuzz test can set one against the other.
"""

from __future__ import annotations

import json
import re
from typing import Any

_EMPTY: dict[str, Any] = {
    "call_status": "failed",
    "failure": "http_error",
    "text": "",
    "reasoning": "",
    "finish_reason": None,
    "output_complete": None,
    "tool_calls": [],
    "model": None,
    "flags": [],
}


class _Bad(Exception):
    pass


def _load(data: bytes, flags: set[str]) -> Any:
    found = set[str]()
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("utf-8", "replace")
        found.add("invalid_utf8")
    try:
        value = json.loads(text, parse_constant=lambda name: int("not JSON: " + name))
    except ValueError:
        raise _Bad from None
    # Written out again and looked at as text: a surrogate that json left over has no partner.
    plain = json.dumps(value, ensure_ascii=False)
    if re.search("[\ud800-\udfff]", plain):
        found.add("lone_surrogate")
        value = json.loads(re.sub("[\ud800-\udfff]", "\ufffd", plain))
    flags |= found
    return value


def _events(body: bytes) -> tuple[list[bytes], bytes | None, bytes]:
    """Events that ended, the data of one that did not, and the last line if it has no end."""
    if body.startswith(b"\xef\xbb\xbf"):
        body = body[3:]
    *lines, last = re.split(rb"\r\n|\r|\n", body)
    events: list[bytes] = []
    data: list[bytes] = []

    def field(line: bytes) -> None:
        name, _, value = line.partition(b":")
        if name == b"data":
            data.append(value[1:] if value.startswith(b" ") else value)

    for line in lines:
        if line:
            field(line)
        elif data:
            if b"".join(data).strip():
                events.append(b"\n".join(data))
            data = []
    if last:
        field(last)
    return events, b"\n".join(data) if b"".join(data).strip() else None, last


def _index_without(
    call_id: object, tools: dict[int, dict[str, Any]], position: int, last: int, fragments: int
) -> int:
    """Another id is another call; a lone fragment without an id goes on with the last call."""
    if not call_id:
        return last if fragments == 1 else position
    same = [index for index in tools if tools[index]["id"] == call_id]
    if same:
        return same[0]
    free = position not in tools or tools[position]["id"] is None
    return position if free else max(tools) + 1


def slow_reply(status: int, body: bytes, end: str) -> dict[str, Any]:
    """The record of an event stream, without `final` and `usage` (which have rules of their own)."""
    if status >= 400:
        return dict(_EMPTY)
    events, open_event, last = _events(body)
    text = reasoning = ""
    model = finish = failure = None
    tools: dict[int, dict[str, Any]] = {}
    last_tool = 0
    flags: set[str] = set()
    done = cut = False
    queue = [(event, False) for event in events]
    if open_event is not None:
        queue.append((open_event, True))
    for data, is_open in queue:
        if data.strip() == b"[DONE]":
            done = True
            break
        try:
            value = _load(data, flags)
        except _Bad:
            last_is_data = last == b"data" or last.startswith(b"data:")
            if is_open and (end != "eof" or last_is_data):
                cut = True
            else:
                failure = "invalid_json"
            break
        if not isinstance(value, dict):
            continue
        if value.get("error") is not None:
            failure = "error_event"
            break
        if model is None and isinstance(value.get("model"), str) and value["model"]:
            model = value["model"]
        choices = value.get("choices")
        for number, choice in enumerate(choices if isinstance(choices, list) else []):
            if not isinstance(choice, dict):
                continue
            if choice.get("index", 0) != 0 or (choice.get("index") is None and number > 0):
                continue
            if isinstance(choice.get("finish_reason"), str) and choice["finish_reason"]:
                finish = choice["finish_reason"]
            delta = choice["delta"] if choice.get("delta") else choice.get("message")
            if not isinstance(delta, dict):
                continue
            content = delta.get("content")
            if isinstance(content, str):
                text += content
            elif isinstance(content, list):
                for part in content:
                    if isinstance(part, dict) and part.get("type") == "text":
                        text += part["text"] if isinstance(part.get("text"), str) else ""
            thought = delta.get("reasoning_content") or delta.get("reasoning")
            if isinstance(thought, str):
                reasoning += thought
            calls = delta.get("tool_calls")
            calls = calls if isinstance(calls, list) else []
            for position, call in enumerate(calls):
                index = call.get("index")
                if not isinstance(index, int):
                    index = _index_without(call.get("id"), tools, position, last_tool, len(calls))
                last_tool = index
                joined = tools.setdefault(index, {"index": index, "id": None, "name": None, "arguments": ""})
                function = call.get("function") or {}
                joined["id"] = joined["id"] or call.get("id") or None
                joined["name"] = joined["name"] or function.get("name") or None
                joined["arguments"] += function.get("arguments") or ""
    last_counts = open_event is not None and (last == b"data" or last.startswith(b"data:"))
    if last and not last_counts:
        cut = True
    if failure is None and not done:
        if end == "stall":
            failure = "stalled"
        elif end == "reset" or cut or finish is None:
            failure = "stream_truncated"
    if failure is None:
        flags |= {"finish_reason_missing"} if finish is None else set()
        flags |= set() if done else {"done_missing"}
    complete = {
        "stop": True,
        "tool_calls": True,
        "function_call": True,
        "length": False,
        "content_filter": False,
    }
    return {
        "call_status": "completed" if failure is None else "failed",
        "failure": failure,
        "text": text,
        "reasoning": reasoning,
        "finish_reason": finish,
        "output_complete": complete.get(finish or "") if failure is None else None,
        "tool_calls": [tools[index] for index in sorted(tools)],
        "model": model,
        "flags": sorted(flags),
    }
