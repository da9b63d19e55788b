"""An audience that a query to PostgreSQL finds, a page at a time by its key.

A page costs the same wherever it lies, if the key has an index that the query can use: the database goes on
behind the last key instead of counting off what came before.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from psycopg import Connection, DataError, ProgrammingError, adapters, errors, sql
from psycopg.abc import AdaptContext
from psycopg.adapt import Loader
from psycopg.pq import Format

from mailroom.campaigns.audience import Found, Page, Rows, check_columns, name_of, portable
from mailroom.campaigns.definition import Postgresql
from mailroom.clock import epoch
from mailroom.errors import Invalid
from mailroom.telemetry import logger

_TIME = "scheduled_at"
_PERCENT = re.compile(rf"%%|%\({_TIME}\)s|%")

_PAGE = "SELECT * FROM (\n{query}\n) AS audience WHERE {where} ORDER BY audience.{key} LIMIT %(limit)s"
_FIRST, _LATER = "audience.{key} IS NOT NULL", "audience.{key} > %(after)s"
_KEYLESS = "SELECT count(*) FROM (\n{query}\n) AS audience WHERE audience.{key} IS NULL"

_Row = dict[str, Any]


def _guarded(name: str, problem: str) -> type[Loader]:
    """A loader of the type of that name. Of a value that Python cannot hold it makes a ValueError, which
    `portable` raises: if the loader raised it, the whole page would be lost."""
    driver: Any = adapters.get_loader(adapters.types[name].oid, Format.TEXT)

    class Guarded(Loader):
        def __init__(self, oid: int, context: AdaptContext | None = None) -> None:
            super().__init__(oid, context)
            self._driver = driver(oid, context)

        def load(self, data: Any) -> Any:
            try:
                return self._driver.load(data)
            except (DataError, ValueError, RecursionError, OverflowError):
                return ValueError(problem)

    return Guarded


_NO_TIME = "is infinity, 24:00 or not of the years 1 to 9999; use NULL, or make a text of it"
_NO_JSON = "has too many levels or digits; use fewer"
_LOADERS = {
    **{name: _guarded(name, _NO_TIME) for name in ("date", "time", "timetz", "timestamp", "timestamptz")},
    **{name: _guarded(name, _NO_JSON) for name in ("json", "jsonb")},
}


class PostgresqlAudience:
    """The rows of one query. `ORDER BY` and `>` use the same collation of the key, so pages neither overlap
    nor leave anybody out. Where several rows have one key, the page has the first of them and a fault for the
    others; where the page ends between them, a single fault."""

    def __init__(self, definition: Postgresql, optional: tuple[str, ...] = ()) -> None:
        """`optional`: columns that the query must have, and whose values may be NULL."""
        self._definition = definition
        self._needed = (definition.key, *definition.columns, *optional)
        # The query is the deployer's own; what a caller gives goes beside it, as a parameter.
        query = sql.SQL(_literal(definition.query))
        self._names: dict[str, sql.Composable] = {"query": query, "key": sql.Identifier(definition.key)}

    def page(self, page: Page) -> Found:
        """One page, in a transaction that can only read. Raises Invalid for a query that cannot be an
        audience, and what psycopg raises for all else."""
        rows = Rows(self._definition.key, self._definition.columns)
        with page.connection(self._definition.database) as connection:
            connection.read_only = True
            if page.cursor is None:
                self._refuse_keyless(connection, page, rows)
            where = sql.SQL(_FIRST if page.cursor is None else _LATER).format(**self._names)
            names, tuples = _asked(connection, sql.SQL(_PAGE).format(where=where, **self._names), page)
        check_columns(names, self._needed)
        found: list[_Row] = [dict(zip(names, each, strict=True)) for each in tuples]
        cursor, found = self._ended(found, page.size)
        for at, values in enumerate(found, 1):
            self._add(rows, values, f"row {at} of the page")
        return rows.found(cursor)

    def _ended(self, found: list[_Row], size: int) -> tuple[str | None, list[_Row]]:
        """The cursor and the rows of a page. `found` may have one row more than the page."""
        last = found[:size][-1:]
        cursor = self._cursor(last[0]) if last else None
        if len(found) <= size:
            return None, found
        # No page after this one has a row of the last key: it is this one's to say that there is another.
        key = self._definition.key
        return cursor, found if found[size][key] == last[0][key] else found[:size]

    def _refuse_keyless(self, connection: Connection[Any], page: Page, rows: Rows) -> None:
        """Rows without a key stand behind no key, so no page ever holds them: they are counted at first. All
        of them are one fault, and count as one of the run's refused."""
        try:
            _, ((count,),) = _asked(connection, sql.SQL(_KEYLESS).format(**self._names), page)
        except errors.QueryCanceled:
            # A key that is an expression is worked out for everybody: too long, and no reason to stop.
            connection.rollback()
            logger.warning("rows without a key were not looked for: it took too long")
            return
        if count:
            problem = f"is NULL in {count} rows; give each a key, or leave them out in the query"
            rows.refuse("all rows", self._definition.key, problem)

    def _add(self, rows: Rows, values: _Row, at: str) -> None:
        where = name_of(values, self._definition.key, at)
        for name, value in values.items():
            try:
                values[name] = portable(value)
            except ValueError as problem:
                rows.refuse(where, name, str(problem))
                return
        rows.add(where, values)

    def _cursor(self, row: _Row) -> str:
        """The last row's key as text, which PostgreSQL reads as whatever the key is."""
        key = row[self._definition.key]
        if isinstance(key, bool) or not isinstance(key, int | str | UUID | Decimal):
            kind = type(key).__name__
            raise Invalid("audience.key", f"is of type {kind}; use a text, a whole number or a UUID: cast it")
        return str(key)


def _asked(
    connection: Connection[Any], query: sql.Composed, page: Page
) -> tuple[list[str], Sequence[Sequence[Any]]]:
    """The answer's columns and rows. Raises Invalid where it is the query that is at fault."""
    values = {
        _TIME: datetime.fromtimestamp(epoch(page.scheduled_at), UTC),
        "after": page.cursor,
        "limit": page.size + 1,
    }
    cursor = connection.cursor()
    for name, loader in _LOADERS.items():
        cursor.adapters.register_loader(name, loader)
    try:
        cursor.execute(query, values)
    except errors.InsufficientPrivilege:
        raise  # the query may be right: what is missing is a grant
    except ProgrammingError as error:
        words = error.diag.message_primary or str(error)
        raise Invalid("audience.query", f"PostgreSQL refuses it: {words}; correct it") from None
    return [each.name for each in cursor.description or ()], cursor.fetchall()


def _literal(query: str) -> str:
    """The query as it stands in another's FROM; a percent sign that begins no parameter is one."""
    bare = query.strip()
    while bare.endswith(";"):
        bare = bare[:-1].rstrip()
    return _PERCENT.sub(lambda found: "%%" if found[0] == "%" else found[0], bare)
