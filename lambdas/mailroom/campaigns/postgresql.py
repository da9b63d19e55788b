"""Audience that is a query to PostgreSQL, read page by page in the order of its key.

Each page costs the same if the key has an index that the query can use, because a page selects the rows after
the last key instead of skipping the rows before it.
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
from mailroom.errors import Invalid, quantity
from mailroom.telemetry import logger

_TIME = "scheduled_at"
_PERCENT = re.compile(rf"%%|%\({_TIME}\)s|%")

_PAGE = "SELECT * FROM (\n{query}\n) AS audience WHERE {where} ORDER BY audience.{key} LIMIT %(limit)s"
_FIRST, _LATER = "audience.{key} IS NOT NULL", "audience.{key} > %(after)s"
_KEYLESS = "SELECT count(*) FROM (\n{query}\n) AS audience WHERE audience.{key} IS NULL"

_Row = dict[str, Any]


def _guarded(name: str, problem: str) -> type[Loader]:
    """Return a loader for the database type `name`. For a value that Python cannot represent, the loader
    returns a ValueError, which `portable` raises later. If the loader raised the error, the whole page would
    fail."""
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


_NO_TIME = "is infinity, 24:00 or not in the years 1 to 9999; use NULL, or convert it to text"
_NO_JSON = "has too many levels or digits; use fewer"
_LOADERS = {
    **{name: _guarded(name, _NO_TIME) for name in ("date", "time", "timetz", "timestamp", "timestamptz")},
    **{name: _guarded(name, _NO_JSON) for name in ("json", "jsonb")},
}


class PostgresqlAudience:
    """Audience of the rows of a query. `ORDER BY` and `>` use the same collation of the key, so pages neither
    overlap nor leave people out. If several rows have the same key, the page contains the first of them, and
    a fault for each of the others (only one fault if the page ends between them)."""

    def __init__(self, definition: Postgresql, optional: tuple[str, ...] = ()) -> None:
        """Create the audience. The query must have the columns `optional`, whose values may be NULL."""
        self._definition = definition
        self._needed = (definition.key, *definition.columns, *optional)
        # The query comes from the deployer, so it is inserted as SQL. The position and the size of a page are
        # passed as parameters.
        query = sql.SQL(_literal(definition.query))
        self._names: dict[str, sql.Composable] = {"query": query, "key": sql.Identifier(definition.key)}

    def page(self, page: Page) -> Found:
        """Return a page, read in a read-only transaction. Raises Invalid for an invalid query, and other
        errors of psycopg."""
        rows = Rows(self._definition.key, self._definition.columns)
        with page.connection(self._definition.database) as connection:
            connection.read_only = True
            if page.cursor is None:
                self._refuse_keyless(connection, page, rows)
            condition = sql.SQL(_FIRST if page.cursor is None else _LATER).format(**self._names)
            query = sql.SQL(_PAGE).format(where=condition, **self._names)
            names, tuples = _query(connection, query, page)
        check_columns(names, self._needed)
        cursor, people = self._end([dict(zip(names, row, strict=True)) for row in tuples], page.size)
        for number, values in enumerate(people, 1):
            self._add(rows, values, f"row {number} of the page")
        return rows.found(cursor)

    def _end(self, people: list[_Row], size: int) -> tuple[str | None, list[_Row]]:
        """Return the cursor and the rows of a page. `people` may have one row more than the page."""
        last = people[:size][-1:]
        cursor = self._cursor(last[0]) if last else None
        if len(people) <= size:
            return None, people
        # Later pages skip rows with the last key. So this page includes a further row with the same key, to
        # report it.
        key = self._definition.key
        return cursor, people if people[size][key] == last[0][key] else people[:size]

    def _refuse_keyless(self, connection: Connection[Any], page: Page, rows: Rows) -> None:
        """Add one fault for all rows whose key is NULL. No page contains these rows, because NULL is not
        greater than any key."""
        try:
            _, ((count,),) = _query(connection, sql.SQL(_KEYLESS).format(**self._names), page)
        except errors.QueryCanceled:
            # If the key is an expression, PostgreSQL computes it for all rows. If that takes too long, the
            # run goes on without this check.
            connection.rollback()
            logger.warning("rows without a key were not counted: the query took too long")
            return
        if count:
            problem = f"is NULL in {quantity(count, 'row')}; add their keys, or exclude them in the query"
            rows.refuse("all rows", self._definition.key, problem)

    def _add(self, rows: Rows, values: _Row, place: str) -> None:
        place = name_of(values, self._definition.key, place)
        for name, value in values.items():
            try:
                values[name] = portable(value)
            except ValueError as problem:
                rows.refuse(place, name, str(problem))
                return
        rows.add(place, values)

    def _cursor(self, row: _Row) -> str:
        """Return the key of a page's last row as text. PostgreSQL converts the text to the type of the
        key."""
        key = row[self._definition.key]
        if isinstance(key, bool) or not isinstance(key, int | str | UUID | Decimal):
            kind = type(key).__name__
            raise Invalid("audience.key", f"has the type {kind}; cast it to a text, a whole number or a UUID")
        return str(key)


def _query(
    connection: Connection[Any], query: sql.Composed, page: Page
) -> tuple[list[str], Sequence[Sequence[Any]]]:
    """Run a query, and return the names of its columns and the rows. Raises Invalid for an invalid query."""
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
        raise  # the query may be valid, and only a permission missing
    except ProgrammingError as error:
        words = error.diag.message_primary or str(error)
        raise Invalid("audience.query", f"PostgreSQL refuses the query: {words}; correct it") from None
    return [column.name for column in cursor.description or ()], cursor.fetchall()


def _literal(query: str) -> str:
    """Return the query for use as a subquery. Percent signs that do not belong to a parameter are escaped."""
    return _PERCENT.sub(lambda match: "%%" if match[0] == "%" else match[0], query.rstrip("; \t\r\n"))
