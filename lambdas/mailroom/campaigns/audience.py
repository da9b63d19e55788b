"""An audience: the people of a campaign, handed out a page at a time."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from psycopg import Connection

Cursor = Any
"""Where the next page begins: any JSON value, of a few hundred bytes, that travels in a queue message."""


class Connections(Protocol):
    """The databases that a campaign may ask, by the names that the stage's settings give them."""

    def connection(self, name: str) -> "AbstractContextManager[Connection[Any]]":
        """A connection of the process's pool, for as long as the context lasts; committed at its end."""


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
    """Whatever hands out people by pages. Asked again with the same cursor it hands out the same people, as
    far as they have not changed; the order must be stable, or somebody is left out."""

    def page(self, page: Page) -> Found:
        """One page. Raises what its source raises: then the page is asked for again."""


def _connection(databases: Connections | None, name: str) -> "AbstractContextManager[Connection[Any]]":
    if databases is None:
        raise LookupError(f"no database {name!r}: the stage's settings name none; add it under databases")
    return databases.connection(name)
