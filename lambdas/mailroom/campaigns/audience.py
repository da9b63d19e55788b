"""An audience: the people of a campaign, handed out a page at a time, and what may be wrong with an entry."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

from msgspec import Struct

from mailroom.aws.dynamo_values import MAX_LEVELS
from mailroom.errors import Invalid, lies_too_deep
from mailroom.message.address import has_control

if TYPE_CHECKING:
    from psycopg import Connection

Cursor = Any
"""Beginning of the next page: any JSON value of a few hundred bytes, which travels in a queue message."""


class Connections(Protocol):
    """The databases that a campaign may ask, by the names that the stage's settings give them."""

    def connection(self, name: str) -> "AbstractContextManager[Connection[Any]]":
        """Open a connection for as long as the context lasts; it is committed at the end."""


class Recipient(Struct, frozen=True):
    """Person of an audience."""

    key: str
    """Key of the person in the audience; never an address, because the key becomes part of an id and appears
    in logs. A whole number or UUID of a module becomes text."""
    attributes: dict[str, Any] = {}
    """Attributes of the person's message, including the address."""


class Fault(Struct, frozen=True):
    """Problem of an entry of an audience, which gets no message. No field quotes a value of the entry."""

    where: str
    """Place of the entry, such as line 17."""
    column: str
    """Column at fault; empty for the whole entry."""
    problem: str
    """Problem, and the remedy."""

    def __str__(self) -> str:
        column = f", column {self.column}" if self.column else ""
        return f"{self.where}{column}: {self.problem}"


class Page(Struct, frozen=True):
    """Request for a page of people for a run of a campaign."""

    cursor: Cursor
    """Beginning of the page; None for the first page."""
    size: int
    """Maximum number of people."""
    run: str
    scheduled_at: str
    """Time of the run (ISO 8601, UTC), which counts as the present time for the campaign."""
    databases: Connections | None = None

    def connection(self, name: str) -> "AbstractContextManager[Connection[Any]]":
        """Open a connection to a database of the stage. Raises LookupError if the stage has none."""
        return _connection(self.databases, name)


class Found(Struct, frozen=True):
    """Page of people and faults."""

    recipients: Sequence[Recipient]
    cursor: Cursor = None
    """Beginning of the next page; None if this page is the last."""
    faults: Sequence[Fault] = ()


class Recipients(Struct, frozen=True):
    """People of a page, for whom `compose` returns further attributes: one query for all of them is better
    than a query for each."""

    people: Sequence[Recipient]
    run: str
    scheduled_at: str
    databases: Connections | None = None

    def __iter__(self) -> Iterator[Recipient]:
        return iter(self.people)

    def __len__(self) -> int:
        return len(self.people)

    @property
    def keys(self) -> list[str]:
        """Keys of the people."""
        return [person.key for person in self.people]

    def connection(self, name: str) -> "AbstractContextManager[Connection[Any]]":
        """Open a connection to a database of the stage. Raises LookupError if the stage has none."""
        return _connection(self.databases, name)


class Audience(Protocol):
    """Source of people, a page at a time. The same cursor returns the same people again unless the data has
    changed. The order must be stable: otherwise people are left out."""

    def page(self, page: Page) -> Found:
        """Return a page. After any error of the source, collect requests the page again."""


def _connection(databases: Connections | None, name: str) -> "AbstractContextManager[Connection[Any]]":
    if databases is None:
        raise LookupError(f"no database {name!r}: the stage's settings name none; add it under databases")
    return databases.connection(name)


MAX_KEY_BYTES = 64
"""Maximum number of bytes of a recipient's key. With the campaign, the run and the end that `Run.id_of` adds,
an id has at most 180. A SHA-256 in hexadecimal fits."""
OWN = ("id", "event_type")
"""Attributes that identify a message. A key column of such a name does not become an attribute."""


class Rows:
    """Entries of a page: valid ones as recipients, and invalid ones as faults."""

    def __init__(self, key: str, columns: Iterable[str]) -> None:
        self._key = key
        self._needed = tuple(name for name in columns if name != key)
        self._keys: set[str] = set()
        self.recipients: list[Recipient] = []
        self.faults: list[Fault] = []

    def __len__(self) -> int:
        return len(self.recipients) + len(self.faults)

    def add(self, place: str, values: dict[str, Any]) -> None:
        """Add an entry, whose values become attributes of the recipient. A key column with a name of OWN is
        left out. Spaces around a key do not count."""
        value = values.get(self._key)
        if isinstance(value, str):
            values[self._key] = value = value.strip()
        problem = self._problem_of_key(value)
        if problem:
            return self.refuse(place, self._key, problem)
        for name in self._needed:
            cell = values.get(name)
            if cell is None or (isinstance(cell, str) and not cell.strip()):
                return self.refuse(place, name, "is empty; fill it, or take the entry out")
        key = str(value)
        if key in self._keys:
            return self.refuse(place, self._key, "is the same as an entry's before it; keep one of them")
        self._keys.add(key)
        if self._key in OWN:
            del values[self._key]
        self.recipients.append(Recipient(key, values))
        return None

    def refuse(self, place: str, column: str, problem: str) -> None:
        """Add a fault for an entry, which gets no message."""
        self.faults.append(Fault(place, column, problem))

    def found(self, cursor: Cursor) -> Found:
        """Return the page; `cursor` is the beginning of the next one."""
        return Found(self.recipients, cursor, self.faults)

    def _problem_of_key(self, value: Any) -> str:
        if value is None or value == "":
            return "is empty; every entry needs a key of its own"
        if isinstance(value, bool) or not isinstance(value, str | int | UUID):
            return "is no key; use a text, a whole number or a UUID"
        text = str(value)
        # Checks that are cheap come first, because most keys are short and printable.
        if len(text) > MAX_KEY_BYTES or len(text.encode(errors="replace")) > MAX_KEY_BYTES:
            return f"is longer than {MAX_KEY_BYTES} bytes; use a shorter one"
        if "@" in text:
            return "is a mail address; a key becomes part of ids, which appear in logs: use another column"
        if not text.isprintable() and has_control(text):
            return "holds a line break or control character; use plain text"
        return ""


def check_columns(columns: Iterable[str], needed: Iterable[str]) -> None:
    """Raise Invalid unless each column has a name of its own, and the needed ones are there."""
    names: set[str] = set()
    for number, name in enumerate(columns, 1):
        if not name.strip():
            raise Invalid("audience.columns", f"column {number} has no name; give it one")
        if name in names:
            raise Invalid("audience.columns", f"two columns are called {name!r:.60}; rename one")
        names.add(name)
    for name in needed:
        if name not in names:
            listed = ", ".join(sorted(names))
            raise Invalid("audience.columns", f"the audience has no column {name!r}; it has: {listed:.300}")


def name_of(values: Mapping[str, Any], key: str, otherwise: str) -> str:
    """Return the place of a database's entry: its key if logs may show the key, or `otherwise`."""
    value = values.get(key)
    valid = isinstance(value, int | UUID) or (isinstance(value, str) and 0 < len(value) <= MAX_KEY_BYTES)
    return f"key {value!s}" if valid and str(value).isprintable() else otherwise


_PORTABLE_DIGITS = 18
"""Maximum digits of a whole number that every reader of JSON reads exactly."""


def portable(value: Any) -> Any:
    """Return the value for JSON. Raises ValueError, which names the problem and never the value. A ValueError
    as the value, which stands for a value that the driver could not convert, is raised.

    Times become ISO 8601, UUIDs text, arrays lists. A `numeric` without decimals becomes a whole number; one
    with them becomes text, exactly as the database shows it: 12.50 stays a price, which a number would make
    12.5.
    """
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, float | Decimal):
        return _number(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, list | tuple | dict):
        return _nested(value)
    if isinstance(value, ValueError):
        raise value
    bytes_like = isinstance(value, bytes | bytearray | memoryview)
    problem = "holds bytes" if bytes_like else "is of a type that a message cannot carry"
    raise ValueError(f"{problem}; leave it out, or make a text of it")


def _nested(value: Any) -> Any:
    if lies_too_deep(value, MAX_LEVELS):
        raise ValueError(f"has over {MAX_LEVELS} levels of lists and objects; use fewer")
    if isinstance(value, dict):
        return {_text(str(name)): portable(item) for name, item in value.items()}
    return [portable(item) for item in value]


def _text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        problem = "holds half of a surrogate pair, which UTF-8 has no bytes for; take it out"
        raise ValueError(problem) from None
    return text


def _number(value: float | Decimal) -> float | int | str:
    if not math.isfinite(value):
        raise ValueError("is NaN or infinity; use NULL or a number")
    if isinstance(value, float):
        return value
    whole = value == value.to_integral_value() and value.as_tuple().exponent == 0
    return int(value) if whole and len(value.as_tuple().digits) <= _PORTABLE_DIGITS else f"{value:f}"
