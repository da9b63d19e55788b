"""Which messages an operator means: ids on the command line, or from another command's output."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, TextIO

from msgspec import Struct

from ops.screen import Refused


class Asked(Struct, frozen=True):
    """One message; `event_type` None: whichever has that id."""

    id: str
    event_type: str | None = None


def asked_for(ids: Iterable[str], channel: str | None, stdin: TextIO) -> list[Asked]:
    """Each of `ids` once, in order. `-` stands for what comes in: an id a line, or the JSON of another
    command, of which every object with `id` and `event_type` is a message. Raises Refused."""
    asked = [
        each
        for text in ids
        for each in (_read(stdin.read(), channel) if text == "-" else [Asked(text, channel)])
    ]
    return [each for each in dict.fromkeys(asked) if channel in (None, each.event_type)]


def _read(text: str, channel: str | None) -> list[Asked]:
    lines = [each.strip() for each in text.splitlines() if each.strip()]
    if not text.lstrip().startswith(("{", "[")):
        return [Asked(each, channel) for each in lines]
    try:
        documents = [json.loads(text)]
    except ValueError:
        documents = [_document(each) for each in lines]
    return [each for document in documents for each in _messages(document)]


def _document(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        raise Refused(f"This line of the standard input is no JSON: {line:.60}") from None


def _messages(value: Any) -> Iterator[Asked]:
    if isinstance(value, dict):
        id_, event_type = value.get("id"), value.get("event_type", value.get("channel"))
        if isinstance(id_, str) and isinstance(event_type, str):
            yield Asked(id_, event_type)
            return
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _messages(each)
