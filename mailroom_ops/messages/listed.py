"""Messages of a list that a person pastes, or has in a file: ids, addresses and numbers, or a CSV file of the
commands and the console."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from mailroom.errors import Invalid
from mailroom.ledger.status_reader import LedgerReader, MessageStatus
from mailroom.mailbox import in_order
from mailroom.message.message import Key
from mailroom.search.finder import Filter, Finder
from mailroom_ops.messages.failures_csv import uncelled
from mailroom_ops.messages.filters import MessageFilter
from mailroom_ops.shared.refusals import Refused

_WORKERS = 16


def text_of(file: Path) -> str:
    """Return the text of a file. Raises Refused if it cannot be read."""
    try:
        return file.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"--ids {file} cannot be read: {error}.") from None


def entries_of(text: str) -> list[tuple[str, str | None]]:
    """Return the entries of a list: texts, and the channels that a CSV file names."""
    rows = csv.DictReader(io.StringIO(text, newline=""))
    if {"id", "event_type"} <= {*(rows.fieldnames or ())}:
        return [(uncelled(row["id"]), row["event_type"]) for row in rows if row["id"]]
    return [(line.strip(), None) for line in text.splitlines() if line.strip()]


def listed(
    reader: LedgerReader, finder: Finder | None, text: str, criteria: MessageFilter
) -> tuple[list[MessageStatus], list[str]]:
    """Return the messages of a list that a filter matches, in the order of the list, and the entries without
    a message. An address or number means all messages to it. Raises Refused for an address if the
    setting `search` is off, and for an unknown status, and botocore's errors."""

    def of(entry: tuple[str, str | None]) -> list[MessageStatus]:
        name, channel = entry
        if messages := [message for message in reader.find(name, channel) if criteria.takes_named(message)]:
            return messages
        if "@" not in name and not name.startswith("+"):
            return []
        if finder is None:
            raise Refused(f"{name} is an address, and the stage has no search; use ids.")
        return [*_to(finder, name, criteria)]

    try:
        criteria.check("")
    except Invalid as fault:
        raise Refused(f"{fault}.") from None
    entries = list(dict.fromkeys(entries_of(text)))
    matches = [*in_order(of, entries, _WORKERS)]
    by_key = {Key(message.id, message.event_type): message for messages in matches for message in messages}
    missing = [name for (name, _), messages in zip(entries, matches, strict=True) if not messages]
    return [*by_key.values()], missing


def _to(finder: Finder, recipient: str, criteria: Filter) -> Iterator[MessageStatus]:
    cursor: str | None = ""
    while cursor is not None:
        page = finder.to(recipient, criteria, cursor)
        yield from page.messages
        cursor = page.cursor
