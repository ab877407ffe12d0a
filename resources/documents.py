"""Reading YAML and JSON documents that people write: strictly, so that nothing is silently reinterpreted."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import yaml

from resources.errors import NotFound, SrBenchError

MAX_BYTES = 16 * 1024 * 1024
MAX_NODES = 500_000
MAX_DEPTH = 64


def read_document(path: Path) -> Any:
    """The YAML or JSON document in the file at `path`, as plain JSON types.

    Raises `NotFound` when there is no such file, and `SrBenchError` naming file, line and cause when it is no
    valid document: duplicate or non-text keys, NaN and infinity, and nesting beyond `MAX_DEPTH` are refused.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise NotFound(f"There is no file {path}.", mend="Check the path.") from None
    except IsADirectoryError:
        raise SrBenchError(f"{path} is a folder, not a file.", mend="Name the file in it.") from None
    except OSError as error:
        raise SrBenchError(
            f"{path} cannot be read: {error.strerror}.", mend="Check its permissions."
        ) from None
    return parse_document(data, str(path))


def parse_document(data: bytes, name: str) -> Any:
    """`data` (UTF-8 YAML or JSON) as plain JSON types; `name` stands for it in errors."""
    if len(data) > MAX_BYTES:
        raise SrBenchError(
            f"{name} has {len(data)} bytes; documents may have {MAX_BYTES}.", mend="Shorten it."
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SrBenchError(f"{name} is not UTF-8 (byte {error.start}).", mend="Save it as UTF-8.") from None
    if not text.strip():
        raise SrBenchError(f"{name} is empty.", mend="docs/manifest.md shows what a manifest looks like.")
    try:
        value = _json(text, name) if text.lstrip()[0] in "{[" and _is_json(text) else _yaml(text, name)
    except RecursionError:
        raise _too_deep(name) from None
    _require_plain(value, name)
    return value


def _is_json(text: str) -> bool:
    """Whether `text` is meant as JSON: YAML's flow style also begins with a brace."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _json(text: str, name: str) -> Any:
    def pairs(members: list[tuple[str, Any]]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, value in members:
            if key in result:
                raise _duplicate(name, key)
            result[key] = value
        return result

    return json.loads(text, object_pairs_hook=pairs)


class _Loader(yaml.SafeLoader):
    """YAML 1.2's core schema: `no` and `1:30` and dates stay text, `1e-7` is a number."""

    yaml_implicit_resolvers = {}  # noqa: RUF012  PyYAML's own class attribute, replaced rather than shared


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:null", re.compile(r"^(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""]
)
_Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"^[-+]?[0-9]+$"), list("-+0123456789"))
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(
        r"^(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
    ),
    list("-+.0123456789"),
)
_Loader.add_implicit_resolver("tag:yaml.org,2002:merge", re.compile(r"^<<$"), ["<"])


def _construct_int(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int:
    return int(loader.construct_scalar(node))  # decimal only: 010 is ten


def _construct_float(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> float:
    text = loader.construct_scalar(node).lower()
    return float(text.replace(".inf", "inf").replace(".nan", "nan"))


_Loader.add_constructor("tag:yaml.org,2002:int", _construct_int)
_Loader.add_constructor("tag:yaml.org,2002:float", _construct_float)


def _yaml(text: str, name: str) -> Any:
    try:
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                raise SrBenchError(f"{name} holds no document.", mend="docs/manifest.md shows a manifest.")
            _refuse_duplicates(node, name, set())
            return loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        # Only the kind of fault: the line itself could hold what its author would not want to see printed.
        raise SrBenchError(
            f"{name} is neither valid JSON nor valid YAML{where}: {error.problem}.",
            mend="Correct the syntax there (indentation, quotes, brackets).",
        ) from None
    except (yaml.YAMLError, ValueError) as error:
        raise SrBenchError(
            f"{name} is not valid YAML: {type(error).__name__}.", mend="Correct its syntax."
        ) from None


def _refuse_duplicates(node: yaml.Node, name: str, seen: set[int]) -> None:
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        keys: set[str] = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in keys:
                    raise _duplicate(f"{name} line {key.start_mark.line + 1}", key.value)
                keys.add(key.value)
            _refuse_duplicates(value, name, seen)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _refuse_duplicates(item, name, seen)


def _require_plain(value: Any, name: str) -> None:
    """Refuse what JSON cannot say, and documents that unfold (by YAML aliases) beyond all measure."""
    stack: list[tuple[Any, int]] = [(value, 0)]
    nodes = 0
    while stack:
        item, depth = stack.pop()
        nodes += 1
        if nodes > MAX_NODES:
            raise SrBenchError(f"{name} has more than {MAX_NODES} values.", mend="Shorten it.")
        if depth > MAX_DEPTH:
            raise _too_deep(name)
        if isinstance(item, dict):
            for key, member in item.items():
                if not isinstance(key, str):
                    raise SrBenchError(
                        f"{name} has the key {key!r}, which is not text.", mend="Put it in quotes."
                    )
                _require_unicode(key, name)
                stack.append((member, depth + 1))
        elif isinstance(item, list):
            stack.extend((member, depth + 1) for member in item)
        elif isinstance(item, str):
            _require_unicode(item, name)
        elif isinstance(item, float):
            if not math.isfinite(item):
                raise SrBenchError(
                    f"{name} holds a number that is infinite or not a number.", mend="Write a finite one."
                )
        elif item is not None and not isinstance(item, bool | int):
            raise SrBenchError(
                f"{name} holds a value of type {type(item).__name__}.", mend="Use JSON's types only."
            )


def _require_unicode(text: str, name: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise SrBenchError(
            f"{name} holds half a surrogate pair, which is no character.", mend="Remove it."
        ) from None


def _duplicate(where: str, key: str) -> SrBenchError:
    return SrBenchError(f"{where} gives the key {key!r} twice.", field=key, mend="Keep one of them.")


def _too_deep(name: str) -> SrBenchError:
    return SrBenchError(f"{name} is nested deeper than {MAX_DEPTH} levels.", mend="Flatten it.")
