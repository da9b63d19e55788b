"""Adds the stream records of changes by PartiQL, which MiniStack leaves out."""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

Item = dict[str, Any]
Change = tuple[Item, Item | None, Item | None]
"""Table of an item, and the item before and after a change."""
_changes: ContextVar[list[Change] | None] = ContextVar("_changes", default=None)
"""Changes of the current statement or transaction; None during other requests, whose stream records MiniStack
adds itself."""


def noting(write: Callable[..., Item | None]) -> Callable[..., Item | None]:
    """Return MiniStack's function `write`, which sets or removes an item and returns the item before, with a
    note of each change by PartiQL."""

    def written(table: Item, partition: str, sort: str, *item: Item) -> Item | None:
        before = write(table, partition, sort, *item)
        changes = _changes.get()
        if changes is not None:
            changes.append((table, before, item[0] if item else None))
        return before

    return written


def recording(execute: Callable[[Item], Any], emit: Callable[..., object]) -> Callable[[Item], Any]:
    """Return MiniStack's handler of statements or of transactions with a record of each change, written by
    `emit` after a successful request. MiniStack rolls back a transaction that fails."""

    def executed(request: Item) -> Any:
        changes: list[Change] = []
        token = _changes.set(changes)
        try:
            response = execute(request)
        finally:
            _changes.reset(token)
        if response[0] == 200:
            for table, before, after in changes:
                event = "REMOVE" if after is None else "MODIFY" if before else "INSERT"
                emit(table["TableName"], event, before, after)
        return response

    return executed
