"""Turns what pydantic found wrong into one sentence that names the key and says what would be right."""

from collections.abc import Iterator
from types import NoneType
from typing import Any, get_args

from annotated_types import Ge, Le
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

KINDS = {"int": "a whole number", "float": "a number", "string": "text", "bool": "true or false"}

SHORT = 120
"""Characters of a value that a sentence shows."""


class SettingsError(Exception):
    """A setting is wrong; its text is a sentence for whoever edits cdk.json."""


def sentence(error: ValidationError, model: type[BaseModel], prefix: str) -> str:
    """The first fault in `error`, in words. `prefix` stands before the key's path in `model`, such as
    "mailroom.dev."."""
    path = path_of(error)
    key = ".".join(part[:SHORT] for part in path)
    return f"{prefix}{key}: {_complaint(error.errors()[0], model, path)}"


def path_of(error: ValidationError) -> list[str]:
    """The key of the first fault in `error`, part by part."""
    return [str(part) for part in error.errors()[0]["loc"] if part != "[key]"]


def _complaint(fault: ErrorDetails, model: type[BaseModel], path: list[str]) -> str:
    kind, value, field = fault["type"], fault["input"], field_of(model, path)
    match kind:
        case "missing":
            return f"is missing; add it{_meaning(field)}."
        case "extra_forbidden":
            names = (name for name in _section(model, path[:-1]).model_fields if name != "stage")
            return f"is not a setting; use one of {', '.join(names)}."
        case "greater_than_equal" | "less_than_equal":
            limit = fault["ctx"]["ge" if kind == "greater_than_equal" else "le"]
            side = "under" if kind == "greater_than_equal" else "over"
            return f"{_short(value)} is {side} {number(limit)}; {_range(field)}."
        case "literal_error":
            choices = fault["ctx"]["expected"].replace("'", "")
            return f"{_short(value)} is unknown; use {choices}."
        case "string_pattern_mismatch":
            return f"{_short(value)} does not fit {fault['ctx']['pattern']}{_meaning(field)}."
        case "value_error":
            return f"{_short(value)} {fault['ctx']['error']}."
        case "too_short" | "string_too_short" | "too_long":
            return _wrong_size(fault, field)
    return _wrong_kind(kind, value, field)


def _wrong_size(fault: ErrorDetails, field: FieldInfo | None) -> str:
    if fault["type"] == "too_long":
        return f"has {fault['ctx']['actual_length']} entries; give at most {fault['ctx']['max_length']}."
    return f"is empty; give at least one{_meaning(field)}."


def _wrong_kind(kind: str, value: object, field: FieldInfo | None) -> str:
    wanted = KINDS.get(kind.split("_", maxsplit=1)[0])
    if wanted is None:
        right = "a list" if "tuple" in kind else "a section in braces"
        return f"{_short(value)} is of the wrong kind; use {right}."
    hint = f"; {_range(field)}" if "number" in wanted else ""
    return f"{_short(value)} is not {wanted}{hint}."


def _short(value: object) -> str:
    """`value`, of which a query or a table would fill the screen."""
    written = repr(value)
    return written if len(written) <= SHORT else f"{written[:SHORT]}…"


def _kind(annotation: Any) -> Any:
    """What is inside `annotation`: a table's rows, a list's entries, what may be null when it is not."""
    inside = [each for each in get_args(annotation) if each not in (NoneType, Ellipsis)]
    return inside[-1] if inside else annotation


def _opened(field: FieldInfo) -> Any:
    """What a field holds, whether or not it may be null instead."""
    annotation = field.annotation
    return _kind(annotation) if NoneType in get_args(annotation) else annotation


def _section(model: type[BaseModel], path: list[str]) -> type[BaseModel]:
    """The model that `path` leads to, where each table takes one more part of it."""
    field = field_of(model, path)
    found = _opened(field) if field else model
    section: type[BaseModel] = found if hasattr(found, "model_fields") else _kind(found)
    return section


def field_of(model: type[BaseModel], path: list[str]) -> FieldInfo | None:
    """The field that `path` names; inside a list or a table, the field that holds it."""
    field, current = None, model
    for part in path:
        fields = getattr(current, "model_fields", None)
        if not fields:
            current = _kind(current)
            continue
        field = fields.get(part)
        if field is None:
            return None
        current = _opened(field)
    return field


def _range(field: FieldInfo | None) -> str:
    """The bounds of a number, both of them, whichever was passed; of a list, its entries' bounds."""
    metadata = [*field.metadata, *_entries(field)] if field else []
    low = next((bound.ge for bound in metadata if isinstance(bound, Ge)), None)
    high = next((bound.le for bound in metadata if isinstance(bound, Le)), None)
    return f"use {number(low)} to {number(high)}"


def _entries(field: FieldInfo) -> Iterator[object]:
    for each in getattr(_kind(field.annotation), "__metadata__", ()):
        yield from each.metadata if isinstance(each, FieldInfo) else ()


def number(value: object) -> str:
    """A number without a needless fraction: 1.0 as 1, 0.2857142 as 0.286."""
    if not isinstance(value, float):
        return str(value)
    return str(int(value)) if value.is_integer() else f"{value:.3g}"


def _meaning(field: FieldInfo | None) -> str:
    if field is None or not field.description:
        return ""
    words = " ".join(field.description.split()).rstrip(".")
    return f": {words[0].lower()}{words[1:]}"
