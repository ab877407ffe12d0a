"""Turning a model's validation errors into problems that name field, cause and mend. Input values are never
repeated: a person may have put a secret in the wrong place."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Sequence
from difflib import get_close_matches
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from resources.errors import SrBenchError

Model = TypeVar("Model", bound=BaseModel)

_SALVAGE_ROUNDS = 8

_MENDS = {
    "int_type": "Write a whole number, without quotes or a decimal point.",
    "float_type": "Write a number, without quotes.",
    "bool_type": "Write true or false, without quotes.",
    "string_type": "Write text; put it in quotes where it looks like a number.",
    "list_type": "Write a list.",
    "dict_type": "Write a mapping of names to values.",
    "model_type": "Write a mapping of names to values.",
    "decimal_type": "Write a number, or a decimal in quotes.",
    "decimal_parsing": "Write a number, or a decimal in quotes.",
}
_FORMS = {
    "id": (
        "letters, digits, '.', '_' and '-', at most 128, beginning with a letter or digit",
        "Shorten it so.",
    ),
    "sha256": (
        "64 lower-case hexadecimal digits",
        "Copy the sha256 that `sr-bench dataset prepare` printed.",
    ),
    "api_key_env": (
        "the name of an environment variable",
        "Write the variable's name, never the key itself.",
    ),
}
_FORMS["preview_api_key_env"] = _FORMS["api_key_env"]
"""What text of a prescribed form looks like, by field name: form, mend."""


def field_path(location: Sequence[int | str], root: str = "") -> str:
    """A location such as `("targets", 1, "prices", "a/b")` as people read it: `targets[1].prices["a/b"]`."""
    path = root
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        elif re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", part):
            path += f".{part}" if path else part
        else:
            path += f"[{json.dumps(part, ensure_ascii=False)}]"
    return path


def validate(model: type[Model], raw: Any, root: str = "") -> tuple[Model | None, list[SrBenchError]]:
    """`raw` (plain JSON types) as an instance of `model`, or None with all its problems.

    Types are strict: `"4"`, `true` and `4.0` are no integers. `root` is the path of `raw` in its document.
    """
    try:
        return model.model_validate_json(json.dumps(raw, allow_nan=False), strict=True), []
    except ValidationError as error:
        return None, [_problem(model, detail, root) for detail in _details(error)]


def salvage(model: type[Model], raw: Any, root: str = "") -> tuple[Model | None, list[str]]:
    """`raw` as `model` without its wrong members, so that the rest can be checked further.

    Returns the instance and the paths of the members left out; None where a required one is at fault.
    """
    dropped: list[str] = []
    current = copy.deepcopy(raw)
    for _ in range(_SALVAGE_ROUNDS):
        try:
            return model.model_validate_json(json.dumps(current, allow_nan=False), strict=True), dropped
        except ValidationError as error:
            for detail in _details(error):
                location = detail["loc"][:-1] if detail["type"] == "missing" else detail["loc"]
                if not location or not _drop(current, location):
                    return None, dropped
                dropped.append(field_path(location, root))
    return None, dropped


def known_fields(model: type[BaseModel], location: Sequence[int | str]) -> list[str]:
    """Names of the fields of the model found at `location` inside `model`; empty where it is no model."""
    annotation: Any = model
    for part in location:
        annotation = _step(annotation, part)
    found = _model_in(annotation)
    return list(found.model_fields) if found else []


def _details(error: ValidationError) -> list[Any]:
    """The errors, but for defaults that wait for a member which is wrong itself."""
    details = error.errors(include_url=False, include_input=False)
    return [detail for detail in details if detail["type"] != "default_factory_not_called"]


def _drop(value: Any, location: Sequence[int | str]) -> bool:
    """Remove the member at `location` from its mapping; False where that cannot be done.

    Items of a list are not removed: the others would change places.
    """
    for part in location[:-1]:
        inside = part in value if isinstance(value, dict) else isinstance(part, int) and part < len(value)
        if not inside:
            return True  # gone already, with a member around it
        value = value[part]
    if not isinstance(value, dict) or location[-1] not in value:
        return False
    del value[location[-1]]
    return True


def _step(annotation: Any, part: int | str) -> Any:
    found = _model_in(annotation)
    if found is not None:
        field = found.model_fields.get(str(part))
        return field.annotation if field else None
    for option in _options(annotation):
        arguments = get_args(option)
        if get_origin(option) in (list, tuple) or (get_origin(option) is dict and len(arguments) == 2):
            return arguments[-1]
    return None


def _options(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    for option in _options(annotation):
        if isinstance(option, type) and get_origin(option) is None and issubclass(option, BaseModel):
            return option
    return None


def _problem(model: type[BaseModel], detail: Any, root: str) -> SrBenchError:
    location: tuple[int | str, ...] = detail["loc"]
    kind: str = detail["type"]
    field = field_path(location, root) or None
    if kind == "extra_forbidden":
        return _unknown_field(known_fields(model, location[:-1]), str(location[-1]), field)
    if kind == "missing":
        return SrBenchError(
            "This field is required and missing.", code="missing_field", field=field, mend="Add it."
        )
    if kind == "string_pattern_mismatch" and str(location[-1]) in _FORMS:
        form, mend = _FORMS[str(location[-1])]
        return SrBenchError(f"It must be {form}.", field=field, mend=mend)
    message = str(detail["msg"]).replace("Input should be", "It must be").rstrip(".")
    message = message.replace("valid dictionary or object to extract fields from", "mapping")
    return SrBenchError(
        f"{message}.", field=field, mend=_MENDS.get(kind, "Write a value within these bounds.")
    )


def _unknown_field(known: list[str], name: str, field: str | None) -> SrBenchError:
    near = get_close_matches(name, known, n=1)
    mend = f"Did you mean {near[0]!r}? " if near else ""
    return SrBenchError(
        "There is no such field.",
        code="unknown_field",
        field=field,
        mend=f"{mend}Remove it, or use one of: {', '.join(known)}." if known else "Remove it.",
    )
