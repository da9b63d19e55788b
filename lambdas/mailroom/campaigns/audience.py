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
"""Where the next page begins: any JSON value, of a few hundred bytes, that travels in a queue message."""


class Connections(Protocol):
    """The databases that a campaign may ask, by the names that the stage's settings give them."""

    def connection(self, name: str) -> "AbstractContextManager[Connection[Any]]":
        """Open a connection for as long as the context lasts; it is committed at the end."""


class Recipient(Struct, frozen=True):
    """One person: `key` is the audience's own (never an address, for it becomes part of an id and appears in
    logs), a text: of a whole number or UUID that a module gives, its text is taken. `attributes` become those
    of the message, its address among them."""

    key: str
    attributes: dict[str, Any] = {}


class Fault(Struct, frozen=True):
    """What is wrong with one entry of an audience, which gets no message: `where` it stands (line 17), in
    which `column` ("": the whole entry), and the `problem`, with what would be right. Never a value."""

    where: str
    column: str
    problem: str

    def __str__(self) -> str:
        column = f", column {self.column}" if self.column else ""
        return f"{self.where}{column}: {self.problem}"


class Page(Struct, frozen=True):
    """What is asked for: up to `size` people from `cursor` on (None: from the beginning), for the `run` of a
    campaign whose time is `scheduled_at` (ISO 8601, UTC): what a campaign calls now."""

    cursor: Cursor
    size: int
    run: str
    scheduled_at: str
    databases: Connections | None = None

    def connection(self, name: str) -> "AbstractContextManager[Connection[Any]]":
        """A connection to one of the stage's databases. Raises LookupError where there are none."""
        return _connection(self.databases, name)


class Found(Struct, frozen=True):
    """One page's people and faults. `cursor` is where the next page begins; None: there is no more."""

    recipients: Sequence[Recipient]
    cursor: Cursor = None
    faults: Sequence[Fault] = ()


class Recipients(Struct, frozen=True):
    """Some people of a page, for `compose` to say more about: one query for all of them is better than one
    each."""

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
        """The keys of all."""
        return [each.key for each in self.people]

    def connection(self, name: str) -> "AbstractContextManager[Connection[Any]]":
        """A connection to one of the stage's databases. Raises LookupError where there are none."""
        return _connection(self.databases, name)


class Audience(Protocol):
    """A source that hands out people by pages. The same cursor hands out the same people again, as far as
    they have not changed. The order must be stable: otherwise people are left out."""

    def page(self, page: Page) -> Found:
        """One page. Raises what its source raises: then the page is asked for again."""


def _connection(databases: Connections | None, name: str) -> "AbstractContextManager[Connection[Any]]":
    if databases is None:
        raise LookupError(f"no database {name!r}: the stage's settings name none; add it under databases")
    return databases.connection(name)


MAX_KEY_BYTES = 64
"""Bytes of a recipient's key: between the campaign with the run and what `Run.id_of` adds, so that an id has
at most 180. A SHA-256 in hexadecimal fits."""
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
        """One entry, whose values become the recipient's. A key column is left out where it has the name of
        an attribute that every message has. Spaces around a key do not count."""
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
        # The cheap checks come first: most keys are short and printable.
        if len(text) > MAX_KEY_BYTES or len(text.encode(errors="replace")) > MAX_KEY_BYTES:
            return f"is longer than {MAX_KEY_BYTES} bytes; use a shorter one"
        if "@" in text:
            return "is a mail address; a key becomes part of ids, which appear in logs: use another column"
        if not text.isprintable() and has_control(text):
            return "holds a line break or control character; use plain text"
        return ""


def check_columns(columns: Iterable[str], needed: Iterable[str]) -> None:
    """Raise Invalid unless each column has a name of its own, and the needed ones are there."""
    named: set[str] = set()
    for at, name in enumerate(columns, 1):
        if not name.strip():
            raise Invalid("audience.columns", f"column {at} has no name; give it one")
        if name in named:
            raise Invalid("audience.columns", f"two columns are called {name!r:.60}; rename one")
        named.add(name)
    for name in needed:
        if name not in named:
            there = ", ".join(sorted(named))
            raise Invalid("audience.columns", f"the audience has no column {name!r}; it has: {there:.300}")


def name_of(values: Mapping[str, Any], key: str, otherwise: str) -> str:
    """Where an entry of a database is: at its key, if that may be shown; `otherwise` if not."""
    value = values.get(key)
    shown = isinstance(value, int | UUID) or (isinstance(value, str) and 0 < len(value) <= MAX_KEY_BYTES)
    return f"key {value!s}" if shown and str(value).isprintable() else otherwise


_PORTABLE_DIGITS = 18
"""Whole numbers beyond are not the same number to every reader of JSON."""


def portable(value: Any) -> Any:
    """The value as JSON has it. Raises ValueError, which names the problem and never the value; a ValueError
    as the value, of which a database's driver could make none, is raised.

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
    what = "holds bytes" if bytes_like else "is of a type that a message cannot carry"
    raise ValueError(f"{what}; leave it out, or make a text of it")


def _nested(value: Any) -> Any:
    if lies_too_deep(value, MAX_LEVELS):
        raise ValueError(f"has over {MAX_LEVELS} levels of lists and objects; use fewer")
    if isinstance(value, dict):
        return {_text(str(name)): portable(each) for name, each in value.items()}
    return [portable(each) for each in value]


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
