"""What the chunks of a chat completion carry: text, reasoning, tool calls, finish reason, model, usage."""

from __future__ import annotations

from typing import Any, cast

import orjson


class ToolCall:
    """One tool call, growing fragment by fragment."""

    __slots__ = ("_arguments", "_id", "_index", "_name")

    def __init__(self, index: int) -> None:
        self._index = index
        self._id: str | None = None
        self._name: str | None = None
        self._arguments: list[str] = []

    def take(self, fragment: dict[str, Any]) -> int:
        """Join a fragment; return how many characters of arguments it brought."""
        call_id = fragment.get("id")
        if self._id is None and isinstance(call_id, str) and call_id:
            self._id = call_id
        function = fragment.get("function")
        if not isinstance(function, dict):
            return 0
        function = cast("dict[str, Any]", function)
        name = function.get("name")
        if self._name is None and isinstance(name, str) and name:
            self._name = name
        arguments = function.get("arguments")
        if arguments is None:
            return 0
        if not isinstance(arguments, str):
            # Some servers send the arguments decoded; the record holds text.
            arguments = orjson.dumps(arguments).decode()
        self._arguments.append(arguments)
        return len(arguments)

    def as_dict(self) -> dict[str, Any]:
        return {
            "index": self._index,
            "id": self._id,
            "name": self._name,
            "arguments": "".join(self._arguments),
        }


class ReplyParts:
    """Collects the parts of choice 0 over all chunks; other choices are not ours."""

    __slots__ = (
        "chars",
        "finish_reason",
        "has_output",
        "model",
        "raw_usage",
        "reasoning",
        "text",
        "tools",
    )

    def __init__(self) -> None:
        self.text: list[str] = []
        self.reasoning: list[str] = []
        self.tools: dict[int, ToolCall] = {}
        self.chars = 0
        """Characters of text, reasoning and tool-call arguments."""
        self.has_output = False
        self.finish_reason: str | None = None
        """The last one that was sent with a value."""
        self.model: str | None = None
        """The first one that was sent with a value."""
        self.raw_usage: dict[str, Any] | None = None
        """The last usage object."""

    def take(self, event: dict[str, Any], *, whole: bool = False) -> None:
        """Take one chunk, or with `whole` a reply that was not streamed."""
        if self.model is None:
            model = event.get("model")
            if isinstance(model, str) and model:
                self.model = model
        usage = event.get("usage")
        if isinstance(usage, dict):
            self.raw_usage = cast("dict[str, Any]", usage)
        choices = event.get("choices")
        if not isinstance(choices, list):
            return
        for choice in cast("list[Any]", choices):
            if isinstance(choice, dict) and not cast("dict[str, Any]", choice).get("index"):
                self._choice(cast("dict[str, Any]", choice), whole)

    def tool_calls(self) -> tuple[dict[str, Any], ...]:
        """The tool calls in the order of their indexes."""
        return tuple(self.tools[index].as_dict() for index in sorted(self.tools))

    def _choice(self, choice: dict[str, Any], whole: bool) -> None:
        finish = choice.get("finish_reason")
        if isinstance(finish, str) and finish:
            self.finish_reason = finish
        delta = choice.get("delta")
        if delta is None:
            delta = choice.get("message")
        if not isinstance(delta, dict):
            return
        delta = cast("dict[str, Any]", delta)
        content = delta.get("content")
        if content:
            text = content if isinstance(content, str) else _text_parts(content)
            if text:
                self.text.append(text)
                self.chars += len(text)
                self.has_output = True
        reasoning = delta.get("reasoning_content") or delta.get("reasoning")
        if isinstance(reasoning, str) and reasoning:
            self.reasoning.append(reasoning)
            self.chars += len(reasoning)
            self.has_output = True
        fragments = delta.get("tool_calls")
        if isinstance(fragments, list):
            self._tool_calls(cast("list[Any]", fragments), whole)

    def _tool_calls(self, fragments: list[Any], whole: bool) -> None:
        for position, fragment in enumerate(fragments):
            if not isinstance(fragment, dict):
                continue
            fragment = cast("dict[str, Any]", fragment)
            index = fragment.get("index")
            if whole or type(index) is not int:
                index = position
            call = self.tools.get(index)
            if call is None:
                call = self.tools[index] = ToolCall(index)
            self.chars += call.take(fragment)
            self.has_output = True


def _text_parts(content: object) -> str:
    """The text parts of a content list, joined; images and other parts are skipped."""
    if not isinstance(content, list):
        return ""
    texts: list[str] = []
    for part in cast("list[Any]", content):
        if isinstance(part, dict):
            part = cast("dict[str, Any]", part)
            text = part.get("text")
            if part.get("type") == "text" and isinstance(text, str):
                texts.append(text)
    return "".join(texts)
