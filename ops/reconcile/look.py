"""A look, kept in a file: which messages were found missing or overdue, and how far the look has come.

One line a page of a table, so that neither a table of any size nor a look that was stopped costs more than
one page.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct, structs

from mailroom.message.message import Key

Table = Literal["mailbox", "ledger"]
Segment = tuple[Table, int]
FRESH = 600.0
"""Seconds that a look which is over is good for, beyond the wait that follows it."""


class Head(Struct, frozen=True):
    """Of what the look is, when it began (epoch seconds), and into how many segments its tables are cut. What
    differs in `about` is another look."""

    about: str
    began: float
    segments: dict[Table, int]


class Page(Struct, frozen=True):
    """One page of one segment: when it was read, how many items it had, and which were found. `next` is where
    the segment goes on; None: it is over."""

    table: Table
    segment: int
    at: float
    seen: int
    found: list[tuple[str, str]]
    next: dict[str, Any] | None

    @property
    def keys(self) -> list[Key]:
        """Those that were found."""
        return [Key(id_, event_type) for id_, event_type in self.found]


class Look:
    """The file. What a process that died left half-written at its end is cut off."""

    def __init__(self, path: Path, head: Head) -> None:
        self.path = path
        self.head = head
        self.seen: dict[Table, int] = {"mailbox": 0, "ledger": 0}
        self.found: dict[Table, int] = {"mailbox": 0, "ledger": 0}
        self.latest = head.began
        """When the last page was read that has something missing from the ledger."""
        self.read = head.began
        """When the last page of all was read."""
        self._next: dict[Segment, dict[str, Any] | None] = {}

    @classmethod
    def at(cls, path: Path, head: Head, oldest: float) -> "Look":
        """The look that the file holds, if it is of the same and began after `oldest`; else a new one."""
        known = _head(path)
        if known is None or known.about != head.about or known.began < oldest:
            look = cls(path, head)
            look._empty()
            look._append(head)
            return look
        look = cls(path, known)
        look._cut()
        for page in look.pages():
            look._take(page)
        return look

    def renewed(self, now: float, older_than: float) -> "Look":
        """This look, or a new one in its place where it is over and too old.

        It tells nothing of what came after it, so it is good for as long as its second look has to wait
        (`older_than`, seconds), and for `FRESH` more.
        """
        if self.left() or self.read >= now - older_than - FRESH:
            return self
        return Look.at(self.path, structs.replace(self.head, began=now), now)

    def left(self) -> dict[Segment, dict[str, Any] | None]:
        """The segments that are not over, and where each goes on (None: at its beginning)."""
        all_ = [(table, at) for table, count in self.head.segments.items() for at in range(count)]
        return {each: self._next.get(each) for each in all_ if self._next.get(each, {}) is not None}

    def add(self, page: Page) -> None:
        """Keep a page."""
        self._append(page)
        self._take(page)

    def pages(self) -> Iterator[Page]:
        """All that were kept."""
        with self.path.open() as lines:
            next(lines)
            for line in lines:
                yield msgspec.json.decode(line, type=Page)

    def close(self) -> None:
        """It is done with."""
        self.path.unlink(missing_ok=True)

    def _take(self, page: Page) -> None:
        self._next[page.table, page.segment] = page.next
        self.read = max(self.read, page.at)
        self.seen[page.table] += page.seen
        self.found[page.table] += len(page.found)
        if page.found and page.table == "mailbox":
            self.latest = max(self.latest, page.at)

    def _append(self, line: Struct) -> None:
        # Ids may tell of people: the file is its owner's alone.
        with os.fdopen(os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab") as file:
            file.write(msgspec.json.encode(line) + b"\n")

    def _empty(self) -> None:
        # Not removed: whoever works with the file holds its lock, which is of this file and no other.
        with suppress(FileNotFoundError):
            os.truncate(self.path, 0)

    def _cut(self) -> None:
        whole = 0
        with self.path.open("rb") as lines:
            for line in lines:
                if not line.endswith(b"\n"):
                    break
                whole += len(line)
        os.truncate(self.path, whole)


def _head(path: Path) -> Head | None:
    try:
        with path.open() as lines:
            return msgspec.json.decode(next(lines, ""), type=Head)
    except (FileNotFoundError, msgspec.DecodeError):
        return None
