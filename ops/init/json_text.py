"""Changes values in a JSON text, and leaves every other character of it as it is."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_DECODER = json.JSONDecoder()
_WIDTH = 100
"""Characters of a line, with its indentation, that an object or a list may take before it gets a line for
each of its entries."""
_INDENT = "  "


@dataclass(frozen=True)
class _Member:
    """Where a member of an object stands in the text: its key, its value, and the end of that."""

    key: int
    value: int
    end: int


def with_changes(text: str, now: Mapping[str, Any], then: Mapping[str, Any], path: Sequence[str] = ()) -> str:
    """The text, in which the object at `path` is `now`, with that object as `then`."""
    for name in now.keys() - then.keys():
        text = _without(text, path, name)
    for name, value in then.items():
        before = now.get(name)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            text = with_changes(text, before, value, (*path, name))
        elif name not in now or before != value:
            text = _with(text, path, name, value)
    return text


def _with(text: str, path: Sequence[str], name: str, value: Any) -> str:
    at, end, members = _object(text, path)
    if name in members:
        found = members[name]
        return text[: found.value] + _written(value, _indent(text, found.key)) + text[found.end :]
    if not members:
        return text[:at] + _lines({name: value}, _indent(text, at)) + text[end:]
    last = [*members.values()][-1]
    key = json.dumps(name, ensure_ascii=False)
    if "\n" not in text[at:end]:
        return f"{text[: last.end]}, {key}: {_line(value)}{text[last.end :]}"
    indent = _indent(text, last.key)
    return f"{text[: last.end]},\n{indent}{key}: {_written(value, indent)}{text[last.end :]}"


def _without(text: str, path: Sequence[str], name: str) -> str:
    at, end, members = _object(text, path)
    names = [*members]
    place, found = names.index(name), members[name]
    if place:
        return text[: members[names[place - 1]].end] + text[found.end :]
    if len(names) > 1:
        return text[: found.key] + text[members[names[1]].key :]
    return f"{text[:at]}{{}}{text[end:]}"


def _object(text: str, path: Sequence[str]) -> tuple[int, int, dict[str, _Member]]:
    """Where the object at `path` begins and ends, and its members."""
    at = _skip(text, 0, "")
    members = _members(text, at)
    for name in path:
        at = members[name].value
        members = _members(text, at)
    return at, _DECODER.raw_decode(text, at)[1], members


def _members(text: str, at: int) -> dict[str, _Member]:
    found: dict[str, _Member] = {}
    at = _skip(text, at, "{")
    while text[at] != "}":
        name, end = _DECODER.raw_decode(text, at)
        value = _skip(text, end, ":")
        end = _DECODER.raw_decode(text, value)[1]
        found[name] = _Member(at, value, end)
        at = _skip(text, end, ",")
    return found


def _skip(text: str, at: int, mark: str) -> int:
    """The next place that is neither blank nor, once, the mark."""
    while text[at].isspace():
        at += 1
    return _skip(text, at + 1, "") if mark and text[at] == mark else at


def _indent(text: str, at: int) -> str:
    """That of the line that the place is on."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip())]


def _written(value: Any, indent: str) -> str:
    line = _line(value)
    return line if len(indent) + len(line) <= _WIDTH or not value else _lines(value, indent)


def _lines(value: Any, indent: str) -> str:
    inner = indent + _INDENT
    if isinstance(value, Mapping):
        entries = [f"{json.dumps(key, ensure_ascii=False)}: {_written(value[key], inner)}" for key in value]
        return "{\n" + ",\n".join(inner + each for each in entries) + f"\n{indent}}}"
    if isinstance(value, list):
        return "[\n" + ",\n".join(inner + _written(each, inner) for each in value) + f"\n{indent}]"
    return _line(value)


def _line(value: Any) -> str:
    if isinstance(value, Mapping) and value:
        entries = [f"{json.dumps(key, ensure_ascii=False)}: {_line(value[key])}" for key in value]
        return f"{{ {', '.join(entries)} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_line, value))}]"
    return json.dumps(value, ensure_ascii=False)
