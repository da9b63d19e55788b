"""Audiences: the people of a campaign, which are read page by page, and the faults of invalid entries."""

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
"""Position at which the next page begins: any JSON value of at most a few hundred bytes, because it is stored
in a queue message."""


class Connections(Protocol):
    """Connections to the databases in the stage's settings, by name."""

    def connection(self, name: str) -> "AbstractContextManager[Connection[Any]]":
        """Return a context manager that opens a connection to the database `name`, and commits and closes it
        at the end."""


class Recipient(Struct, frozen=True):
    """Person in an audience."""

    key: str
    """Key of the person in the audience; never an address, because the key becomes part of an id and appears
    in logs. A whole number or a UUID is converted to text."""
    attributes: dict[str, Any] = {}
    """Attributes of the person's message, including the recipient's address."""


class Fault(Struct, frozen=True):
    """Reason why an entry of an audience is invalid and gets no message. No field contains a value of the
    entry, except for its key."""

    where: str
    """Position of the entry, such as line 17."""
    column: str
    """Column with the invalid value; empty if the whole entry is invalid."""
    problem: str
    """Description of the problem and its remedy."""

    def __str__(self) -> str:
        column = f", column {self.column}" if self.column else ""
        return f"{self.where}{column}: {self.problem}"


class Page(Struct, frozen=True):
    """Request for a page of a campaign's audience."""

    cursor: Cursor
    """Position at which the page begins; None for the first page."""
    size: int
    """Maximum number of people."""
    run: str
    scheduled_at: str
    """Time of the run (ISO 8601, UTC), which counts as the present time for the campaign."""
    databases: Connections | None = None

    def connection(self, name: str) -> "AbstractContextManager[Connection[Any]]":
        """Return a context manager with a connection to a database of the stage. Raises LookupError if the
        stage lacks the database."""
        return _connection(self.databases, name)


class Found(Struct, frozen=True):
    """Page of an audience: its people, and the faults of invalid entries."""

    recipients: Sequence[Recipient]
    cursor: Cursor = None
    """Position at which the next page begins; None if this page is the last."""
    faults: Sequence[Fault] = ()


class Recipients(Struct, frozen=True):
    """People for whom a campaign's `compose` returns further attributes. The function gets them together, so
    that one query can read the data of all."""

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
        """Return a context manager with a connection to a database of the stage. Raises LookupError if the
        stage lacks the database."""
        return _connection(self.databases, name)


class Audience(Protocol):
    """Audience of a campaign, which is read page by page. The same cursor returns the same people again
    unless the data has changed. The order must be stable, because otherwise people are left out."""

    def page(self, page: Page) -> Found:
        """Return a page. After any error, the function `collect` requests the page again."""


def _connection(databases: Connections | None, name: str) -> "AbstractContextManager[Connection[Any]]":
    if databases is None:
        raise LookupError(f"the stage's settings have no database {name!r}; add it under databases")
    return databases.connection(name)


MAX_KEY_BYTES = 64
"""Maximum number of bytes of a recipient's key. Together with the campaign's name, the run's name and the
suffix of `Run.id_of`, an id then has at most 180 bytes. A SHA-256 in hexadecimal fits into a key."""
OWN = ("id", "event_type")
"""Attributes that identify a message. A key column of such a name does not become an attribute."""


class Rows:
    """Collects the entries of a page: valid entries become recipients, and invalid entries become faults."""

    def __init__(self, key: str, columns: Iterable[str]) -> None:
        self._key = key
        self._needed = tuple(name for name in columns if name != key)
        self._keys: set[str] = set()
        self.recipients: list[Recipient] = []
        self.faults: list[Fault] = []

    def __len__(self) -> int:
        return len(self.recipients) + len(self.faults)

    def add(self, place: str, values: dict[str, Any]) -> None:
        """Add an entry. Its values become attributes of the recipient, except for a key column with a name in
        OWN. Spaces around a key are removed."""
        value = values.get(self._key)
        if isinstance(value, str):
            values[self._key] = value = value.strip()
        problem = self._problem_of_key(value)
        if problem:
            return self.refuse(place, self._key, problem)
        for name in self._needed:
            cell = values.get(name)
            if cell is None or (isinstance(cell, str) and not cell.strip()):
                return self.refuse(place, name, "is empty; fill it, or remove the entry")
        key = str(value)
        if key in self._keys:
            return self.refuse(place, self._key, "is also the key of an earlier entry; keep one of them")
        self._keys.add(key)
        if self._key in OWN:
            del values[self._key]
        self.recipients.append(Recipient(key, values))
        return None

    def refuse(self, place: str, column: str, problem: str) -> None:
        """Add a fault for an invalid entry, which then gets no message."""
        self.faults.append(Fault(place, column, problem))

    def found(self, cursor: Cursor) -> Found:
        """Return the page. `cursor` is the position at which the next page begins, or None."""
        return Found(self.recipients, cursor, self.faults)

    def _problem_of_key(self, value: Any) -> str:
        if value is None or value == "":
            return "is empty; every entry needs a unique key"
        if isinstance(value, bool) or not isinstance(value, str | int | UUID):
            return "is not a key; use a text, a whole number or a UUID"
        text = str(value)
        # Checks that are cheap come first, because most keys are short and printable.
        if len(text) > MAX_KEY_BYTES or len(text.encode(errors="replace")) > MAX_KEY_BYTES:
            return f"is longer than {MAX_KEY_BYTES} bytes; use a shorter key"
        if "@" in text:
            return "is a mail address; a key is part of ids, which appear in logs: use another column"
        if not text.isprintable() and has_control(text):
            return "holds a line break or control character; use plain text"
        return ""


def check_columns(columns: Iterable[str], needed: Iterable[str]) -> None:
    """Raise Invalid if a column lacks a name, if two columns have the same name, or if one of the columns
    `needed` is missing."""
    names: set[str] = set()
    for number, name in enumerate(columns, 1):
        if not name.strip():
            raise Invalid("audience.columns", f"column {number} has no name; add a name")
        if name in names:
            raise Invalid("audience.columns", f"two columns have the name {name!r:.60}; rename one")
        names.add(name)
    for name in needed:
        if name not in names:
            listed = ", ".join(sorted(names))
            raise Invalid("audience.columns", f"the audience has no column {name!r}; it has: {listed:.300}")


def name_of(values: Mapping[str, Any], key: str, otherwise: str) -> str:
    """Return the description of a database row's position for a fault: the row's key if it is a number, a
    UUID, or a short printable text, or else `otherwise`."""
    value = values.get(key)
    valid = isinstance(value, int | UUID) or (isinstance(value, str) and 0 < len(value) <= MAX_KEY_BYTES)
    return f"key {value!s}" if valid and str(value).isprintable() else otherwise


_PORTABLE_DIGITS = 18
"""Maximum number of digits of a `numeric` that becomes a whole number in JSON."""


def portable(value: Any) -> Any:
    """Convert a value for JSON. Raises ValueError, whose text describes the problem without the value. If the
    value is a ValueError, because the driver could not convert the original value, it is raised.

    Times are converted to ISO 8601, UUIDs to text, and arrays to lists. A `numeric` without decimals becomes
    a whole number. A `numeric` with decimals becomes text exactly as in the database, so that the price 12.50
    does not become 12.5.
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
    problem = "holds bytes" if bytes_like else "has an unsupported type"
    raise ValueError(f"{problem}; remove it, or convert it to text")


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
        problem = "holds half of a surrogate pair, which is invalid in UTF-8; remove it"
        raise ValueError(problem) from None
    return text


def _number(value: float | Decimal) -> float | int | str:
    if not math.isfinite(value):
        raise ValueError("is NaN or infinity; use NULL or a number")
    if isinstance(value, float):
        return value
    whole = value == value.to_integral_value() and value.as_tuple().exponent == 0
    return int(value) if whole and len(value.as_tuple().digits) <= _PORTABLE_DIGITS else f"{value:f}"
