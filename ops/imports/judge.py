"""Which entries of a file are messages: the same rules for an import and for a dry run."""

from typing import Any

from msgspec import Struct

from mailroom.dispatch.validator import Validator
from mailroom.errors import Invalid, Malformed
from ops.imports.entries import Entry
from ops.imports.items import Items
from ops.imports.options import Options


class Fault(Struct, frozen=True):
    """What is wrong with a line: its number, as an editor counts, the column ("": all of it), and why."""

    line: int
    column: str
    problem: str

    @property
    def reason(self) -> str:
        """Column and problem as one sentence."""
        return f"{self.column}: {self.problem}" if self.column else self.problem


class Judge:
    """Says of an entry which item it is, or why it is none."""

    def __init__(self, options: Options, items: Items, validator: Validator) -> None:
        self._options = options
        self._items = items
        self._validator = validator

    def item(self, entry: Entry) -> dict[str, Any] | Fault:
        """The item, whose id and event_type are strings; or what is wrong with it."""
        line = entry.begin.line
        if entry.values is None:
            return Fault(line, entry.column, entry.problem)
        try:
            item = self._items.item(line, entry.values)
            self._validator.validate(item)
        except Invalid as fault:
            return self.fault(entry, fault.field, fault.problem)
        except (Malformed, RecursionError) as fault:
            return Fault(line, "", str(fault) if isinstance(fault, Malformed) else "lies too deep")
        return item

    def fault(self, entry: Entry, field: str, problem: str) -> Fault:
        """What is wrong with an attribute, by the column that it comes from."""
        base = field.partition("[")[0].partition(".")[0]
        column = self._options.column(base)
        return Fault(entry.begin.line, column + field[len(base) :] if column else field, problem)
