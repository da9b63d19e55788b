"""Messages that an operator selects: by ids on the command line, or by another command's output."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, TextIO

from msgspec import Struct

from mailroom.errors import can_be_key
from mailroom.message.message import MAX_ID_BYTES
from mailroom_ops.shared.refusals import Refused


class MessageRef(Struct, frozen=True):
    """Reference to a message that an operator selects. If `event_type` is None, it means messages of all
    channels with the id. Raises Refused if no message can have the id and the event_type."""

    id: str
    event_type: str | None = None

    def __post_init__(self) -> None:
        if not can_be_key(self.id):
            raise Refused(f"No message can have the id {self.id!r:.60}; an id has 1 to {MAX_ID_BYTES} bytes.")
        if not can_be_key(self.id, self.event_type):
            raise Refused(
                f"channel: {self.event_type!r:.60} cannot be a channel; leave it out for all channels."
            )


def selected(ids: Iterable[str], channel: str | None, stdin: TextIO, stage: str) -> list[MessageRef]:
    """Return references to `ids`, in order and without duplicates. The id `-` means standard input, which has
    one id per line, or the JSON output of a command, in which every object with `id` and `event_type` is a
    message. Raises Refused if the JSON is invalid, is about another stage, or leaves out messages."""
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
    """Raise Refused if a command's JSON output is about another stage, or is incomplete."""
    if not isinstance(document, dict):
        return
    piped = document.get("stage", stage)
    if piped != stage:
        raise Refused(
            f"The JSON on standard input is about stage {piped!s:.40}, but this command about {stage}: use "
            f"--stage {stage} for both commands."
        )
    if document.get("more") is True:
        raise Refused(
            "The JSON on standard input leaves out messages (more: true): use a larger --limit for the "
            "command that printed it."
        )


def _messages(value: Any) -> Iterator[MessageRef]:
    if isinstance(value, dict):
        id_, event_type = value.get("id"), value.get("event_type", value.get("channel"))
        if isinstance(id_, str) and isinstance(event_type, str):
            # `messages resend` prints an empty event_type for an unknown message of any channel.
            yield MessageRef(id_, event_type or None)
            return
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from _messages(part)
