"""What an audience's entries have in common wherever they lie: a key, columns, and what may be wrong."""

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from mailroom.campaigns.audience import Cursor, Fault, Found, Recipient
from mailroom.errors import Invalid
from mailroom.message.address import has_control

MAX_KEY_BYTES = 100
"""Of a recipient's key: with the campaign and the run before it, an id has at most 180."""
OWN = ("id", "event_type")
"""Attributes that every message has of its own: a key column of that name is not one of them."""


class Rows:
    """One page's entries, as recipients where they are right, and as faults where they are not."""

    def __init__(self, key: str, columns: Iterable[str]) -> None:
        self._key = key
        self._needed = tuple(name for name in columns if name != key)
        self._keys: set[str] = set()
        self.recipients: list[Recipient] = []
        self.faults: list[Fault] = []

    def __len__(self) -> int:
        return len(self.recipients) + len(self.faults)

    def add(self, where: str, values: dict[str, Any]) -> None:
        """One entry, which is this one's from now on: its key column goes where a message has its own. Spaces
        around a key are none of it."""
        value = values.get(self._key)
        if isinstance(value, str):
            values[self._key] = value = value.strip()
        problem = self._problem_of_key(value)
        if problem:
            return self.refuse(where, self._key, problem)
        for name in self._needed:
            cell = values.get(name)
            if cell is None or (isinstance(cell, str) and not cell.strip()):
                return self.refuse(where, name, "is empty; fill it, or take the entry out")
        key = str(value)
        if key in self._keys:
            return self.refuse(where, self._key, "is the same as an entry's before it; keep one of them")
        self._keys.add(key)
        if self._key in OWN:
            del values[self._key]
        self.recipients.append(Recipient(key, values))
        return None

    def refuse(self, where: str, column: str, problem: str) -> None:
        """One entry that gets no message."""
        self.faults.append(Fault(where, column, problem))

    def found(self, cursor: Cursor) -> Found:
        """All of the page; the next one begins at the cursor."""
        return Found(self.recipients, cursor, self.faults)

    def _problem_of_key(self, value: Any) -> str:
        if value is None or value == "":
            return "is empty; every entry needs a key of its own"
        if isinstance(value, bool) or not isinstance(value, str | int | UUID):
            return "is no key; use a text, a whole number or a UUID"
        text = str(value)
        # Most keys are short and printable, of which the first two looks cost next to nothing.
        if len(text) > MAX_KEY_BYTES or len(text.encode(errors="replace")) > MAX_KEY_BYTES:
            return f"is longer than {MAX_KEY_BYTES} bytes; use a shorter one"
        if "@" in text:
            return "is a mail address; a key becomes part of ids, which appear in logs: use another column"
        if not text.isprintable() and has_control(text):
            return "holds a line break or control character; use plain text"
        return ""


def check_columns(columns: Iterable[str], key: str, needed: Iterable[str]) -> None:
    """Raise Invalid unless the columns are named each once, and the key's and the needed ones are there."""
    named: set[str] = set()
    for at, name in enumerate(columns, 1):
        if not name.strip():
            raise Invalid("audience.columns", f"column {at} of the audience has no name; give it one")
        if name in named:
            raise Invalid("audience.columns", f"the audience has two columns {name!r:.60}; rename one")
        named.add(name)
    for name in (key, *needed):
        if name not in named:
            there = ", ".join(sorted(named))
            raise Invalid("audience.columns", f"the audience has no column {name!r}; it has: {there:.300}")


def name_of(values: Mapping[str, Any], key: str, otherwise: str) -> str:
    """Where an entry without a line stands: at its key, which may be shown, for it is no address; or where it
    is said `otherwise`."""
    value = values.get(key)
    shown = isinstance(value, int | UUID) or (isinstance(value, str) and 0 < len(value) <= MAX_KEY_BYTES)
    return f"key {value!s}" if shown and str(value).isprintable() else otherwise
