"""Messages of a list that a person pastes, or has in a file: ids, addresses and numbers, or a CSV file of the
commands and the console."""

import csv
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from mailroom.ledger.status_reader import LedgerReader, MessageStatus
from mailroom.message.message import Key
from mailroom.search.finder import Filter, Finder
from mailroom_ops.shared.screen import Refused

_WORKERS = 16


def entries_of(lines: Sequence[str]) -> list[tuple[str, str | None]]:
    """Return the entries of a list: texts, and the channels that a CSV file names."""
    header = next(csv.reader(lines[:1]), [])
    if {"id", "event_type"} <= {*header}:
        rows = csv.DictReader(lines)
        # The CSV file has an apostrophe before a text that a spreadsheet would take for a formula.
        return [(f"{row['id']}".removeprefix("'"), row["event_type"]) for row in rows if row["id"]]
    return [(line.strip(), None) for line in lines if line.strip()]


def listed(
    reader: LedgerReader, finder: Finder | None, lines: Sequence[str], criteria: Filter
) -> tuple[list[MessageStatus], list[str]]:
    """Return the messages of a list that a filter matches, in the order of the list, and the entries without
    a message. An address or number means all messages to it. Raises Refused for an address if the
    setting `search` is off, and the errors of `Finder.to`."""

    def of(entry: tuple[str, str | None]) -> list[MessageStatus]:
        text, channel = entry
        if messages := [message for message in reader.find(text, channel) if criteria.takes(message)]:
            return messages
        if "@" not in text and not text.startswith("+"):
            return []
        if finder is None:
            raise Refused(f"{text} is an address, and the stage has no search; use ids.")
        return [*_to(finder, text, criteria)]

    entries = list(dict.fromkeys(entries_of(lines)))
    with ThreadPoolExecutor(_WORKERS) as pool:
        matches = list(pool.map(of, entries))
    by_key = {Key(message.id, message.event_type): message for messages in matches for message in messages}
    missing = [text for (text, _), messages in zip(entries, matches, strict=True) if not messages]
    return [*by_key.values()], missing


def _to(finder: Finder, recipient: str, criteria: Filter) -> Iterator[MessageStatus]:
    cursor: str | None = ""
    while cursor is not None:
        page = finder.to(recipient, criteria, cursor)
        yield from page.messages
        cursor = page.cursor
