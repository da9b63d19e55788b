"""Messages that an operator selects: by ids on the command line, or by another command's output."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, TextIO

from msgspec import Struct

from mailroom_ops.shared.screen import Refused


class MessageRef(Struct, frozen=True):
    """A message that an operator selects; without `event_type`, any with that id."""

    id: str
    event_type: str | None = None


def selected(ids: Iterable[str], channel: str | None, stdin: TextIO, stage: str) -> list[MessageRef]:
    """Return `ids` in order, without duplicates. `-` stands for standard input: an id a line, or the JSON of
    another command, in which every object with `id` and `event_type` is a message. Raises Refused, also if
    that command read another stage or left messages out."""
    refs = [
        ref
        for text in ids
        for ref in (_read(stdin.read(), channel, stage) if text == "-" else [MessageRef(text, channel)])
    ]
    return [ref for ref in dict.fromkeys(refs) if channel in (None, ref.event_type)]


def _read(text: str, channel: str | None, stage: str) -> list[MessageRef]:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not text.lstrip().startswith(("{", "[")):
        return [MessageRef(line, channel) for line in lines]
    try:
        documents = [json.loads(text)]
    except ValueError:
        documents = [_document(line) for line in lines]
    for document in documents:
        _check(document, stage)
    return [ref for document in documents for ref in _messages(document)]


def _document(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        raise Refused(f"Standard input: this line is not JSON: {line:.60}") from None


def _check(document: Any, stage: str) -> None:
    """Raise Refused if a command's answer is about another stage, or incomplete."""
    if not isinstance(document, dict):
        return
    piped = document.get("stage", stage)
    if piped != stage:
        raise Refused(
            f"The piped JSON is about the stage {piped!s:.40}, and this command about {stage}: give --stage "
            f"{stage} to both commands."
        )
    if document.get("more") is True:
        raise Refused(
            "The piped JSON says more: true, so it leaves messages out: give the command before this one a "
            "larger --limit."
        )


def _messages(value: Any) -> Iterator[MessageRef]:
    if isinstance(value, dict):
        id_, event_type = value.get("id"), value.get("event_type", value.get("channel"))
        if isinstance(id_, str) and isinstance(event_type, str):
            yield MessageRef(id_, event_type)
            return
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from _messages(part)
