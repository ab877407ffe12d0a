"""What the chunks of a chat completion carry: text, reasoning, tool calls, finish reason, model, usage."""

from __future__ import annotations

from typing import Any

from resources.gateway.tolerant_json import json_text

# Chunks are the hot path, so types are asked by `x.__class__ is dict`: decoded JSON has no subclasses.


class ToolCall:
    """One tool call, growing fragment by fragment."""

    __slots__ = ("_arguments", "_index", "_name", "call_id")

    def __init__(self, index: int) -> None:
        self._index = index
        self.call_id: str | None = None
        self._name: str | None = None
        self._arguments: list[str] = []

    def take(self, fragment: dict[str, Any]) -> int:
        """Join a fragment; return how many characters of arguments it brought."""
        call_id = fragment.get("id")
        if self.call_id is None and call_id.__class__ is str and call_id:
            self.call_id = call_id
        function: Any = fragment.get("function")
        if function.__class__ is not dict:
            return 0
        name = function.get("name")
        if self._name is None and name.__class__ is str and name:
            self._name = name
        arguments = function.get("arguments")
        if arguments is None:
            return 0
        if arguments.__class__ is not str:
            # Some servers send the arguments decoded; the record holds text.
            arguments = json_text(arguments)
        self._arguments.append(arguments)
        return len(arguments)

    def as_dict(self) -> dict[str, Any]:
        return {
            "index": self._index,
            "id": self.call_id,
            "name": self._name,
            "arguments": "".join(self._arguments),
        }


class ReplyParts:
    """Collects the parts of choice 0 over all chunks; other choices are not ours."""

    __slots__ = (
        "_last_tool",
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
        self._last_tool = 0
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
            if model and model.__class__ is str:
                self.model = model
        usage = event.get("usage")
        if usage.__class__ is dict:
            self.raw_usage = usage
        choices: Any = event.get("choices")
        if choices.__class__ is list:
            for position, choice in enumerate(choices):
                if choice.__class__ is dict:
                    index = choice.get("index")
                    if not (position if index is None else index):
                        self._choice(choice, whole)

    def tool_calls(self) -> tuple[dict[str, Any], ...]:
        """The tool calls in the order of their indexes."""
        return tuple(self.tools[index].as_dict() for index in sorted(self.tools))

    def _choice(self, choice: dict[str, Any], whole: bool) -> None:
        finish = choice.get("finish_reason")
        if finish and finish.__class__ is str:
            self.finish_reason = finish
        delta = choice.get("delta") or choice.get("message")
        if not delta or delta.__class__ is not dict:
            return
        content = delta.get("content")
        if content:
            text: str = content if content.__class__ is str else _text_parts(content)
            if text:
                self.text.append(text)
                self.chars += len(text)
                self.has_output = True
        reasoning = delta.get("reasoning_content") or delta.get("reasoning")
        if reasoning and reasoning.__class__ is str:
            self.reasoning.append(reasoning)
            self.chars += len(reasoning)
            self.has_output = True
        fragments = delta.get("tool_calls")
        if fragments and fragments.__class__ is list:
            self._tool_calls(fragments, whole)

    def _tool_calls(self, fragments: list[Any], whole: bool) -> None:
        for position, fragment in enumerate(fragments):
            if fragment.__class__ is not dict:
                continue
            index = fragment.get("index")
            if whole:
                index = position
            elif type(index) is not int:
                index = self._index_of(fragment.get("id"), position, alone=len(fragments) == 1)
            call = self.tools.get(index)
            if call is None:
                call = self.tools[index] = ToolCall(index)
            self._last_tool = index
            self.chars += call.take(fragment)
            self.has_output = True

    def _index_of(self, call_id: Any, position: int, *, alone: bool) -> int:
        """Which call a fragment without index belongs to: another id is another call, none goes on with the last."""
        if not call_id or call_id.__class__ is not str:
            return self._last_tool if alone else position
        for index, call in self.tools.items():
            if call.call_id == call_id:
                return index
        known = self.tools.get(position)
        return position if known is None or known.call_id is None else max(self.tools) + 1


def _text_parts(content: Any) -> str:
    """The text parts of a content list, joined; images and other parts are skipped."""
    if content.__class__ is not list:
        return ""
    texts: list[str] = []
    for part in content:
        if part.__class__ is dict and part.get("type") == "text":
            text = part.get("text")
            if text.__class__ is str:
                texts.append(text)
    return "".join(texts)
