"""Convert an entry of a file to a mailbox item, or to the faults in the entry."""

from collections.abc import Collection, Mapping
from functools import cache
from typing import Any, Literal

from msgspec import Struct

from mailroom.campaigns.audience import check_columns
from mailroom.campaigns.file_formats import FileEntry
from mailroom.channels.contracts import CONTRACTS
from mailroom.channels.preview import Previews
from mailroom.dispatch.dispatcher import Validator
from mailroom.errors import Invalid, Malformed
from mailroom.message import address
from mailroom.message.message import Message, mistakes
from mailroom_ops.messages.items import attributes_of
from mailroom_ops.shared.screen import Refused

Format = Literal["csv", "jsonl"]
ID, CHANNEL = "id", "event_type"
_attributes = cache(attributes_of)


class Options(Struct, frozen=True, kw_only=True):
    """Options by which lines become messages. An import goes on only with the options that it began with."""

    format: Format
    channel: str
    """Channel of all messages, or "" if each line names its own."""
    id_prefix: str
    """Beginning of each id, or "" if the ids in the file are whole."""
    maps: dict[str, str]
    """Attributes that columns become."""

    def attribute(self, column: str) -> str:
        """Return the attribute that a column becomes."""
        return self.maps.get(column, column)

    @property
    def numbers(self) -> bool:
        """Return whether the number of a line without an id becomes its id."""
        return bool(self.id_prefix) and ID not in self.maps.values()

    def column(self, attribute: str) -> str:
        """Return the column of an attribute."""
        named = (column for column, mapped in self.maps.items() if mapped == attribute)
        return next(named, attribute)


class LineFault(Struct, frozen=True):
    """A fault in a line: its number, as an editor counts, the column ("": all of it), and why."""

    line: int
    column: str
    problem: str


class Items:
    """Makes items by the options. `lanes` are those of each channel of the stage: messages take the one for
    bulk, if the channel has it, unless a line has another."""

    def __init__(
        self, options: Options, lanes: Mapping[str, list[str]], validator: Validator, previews: Previews
    ) -> None:
        self._options = options
        self._lanes = lanes
        self._validator = validator
        self._previews = previews

    def check_header(self, header: list[str]) -> None:
        """Raise Refused where these columns cannot make messages by the options."""
        options = self._options
        for column in options.maps:
            if column not in header:
                columns = f"it has: {', '.join(header):.300}"
                raise Refused(f"--map: there is no column {column!r:.60}; {columns}.")
        attributes = [options.attribute(column) for column in header]
        try:
            check_columns(attributes, ())
        except Invalid as fault:
            raise Refused(f"The header, with --map: {fault.problem}.") from None
        if not options.channel and CHANNEL not in attributes:
            raise Refused("Which channel is it? Say --channel mail, or name a column event_type.")
        if not options.id_prefix and ID not in attributes:
            raise Refused(
                "The lines have no ids: name the column that has them by --map COLUMN=id, or let them be "
                "made of the lines' numbers by --id-prefix, which no other file may have, such as "
                "--id-prefix people-2026-11-21."
            )

    def numbered(self, columns: Collection[str]) -> bool:
        """Return whether ids are made of the lines' numbers in the file, and not of the lines' content."""
        attributes = {self._options.attribute(column) for column in columns}
        return self._options.numbers and ID not in attributes

    def judged(self, entry: FileEntry) -> dict[str, Any] | LineFault:
        """Return the item of an entry, as the stage's own entrance would take it, or the entry's fault."""
        line = entry.begin.line
        if entry.values is None:
            return LineFault(line, entry.column, entry.problem)
        try:
            item = self.item(line, entry.values)
            self._previews.check(self._validator.validate(item))
        except Invalid as fault:
            return self.fault(line, fault.field, fault.problem)
        except Malformed as fault:
            return LineFault(line, "", str(fault))
        return item

    def fault(self, line: int, field: str, problem: str) -> LineFault:
        """Return the fault in an attribute, by the column that it comes from."""
        base = field.partition("[")[0].partition(".")[0]
        column = self._options.column(base)
        return LineFault(line, column + field[len(base) :], problem)

    def item(self, line: int, values: Mapping[str, Any]) -> dict[str, Any]:
        """The item of a line. Raises Invalid, which names the attribute."""
        item = {self._options.attribute(column): value for column, value in values.items()}
        item[CHANNEL] = self._channel(item)
        known = _attributes(item[CHANNEL])
        id_ = self._id(item, line)
        # An empty cell of an attribute counts as missing. A variable of the template may be empty.
        item = {name: value for name, value in item.items() if value != "" or not known.known(name)}
        if self._options.format == "csv":
            item = {name: known.value(name, text) for name, text in item.items()}
        if columns_alike := mistakes(CONTRACTS.get(item[CHANNEL], Message), item):
            item["audience_columns"] = sorted(columns_alike)
        if "lane" not in item and "bulk" in self._lanes.get(item[CHANNEL], ()):
            item["lane"] = "bulk"
        item[ID] = id_
        return item

    def _channel(self, item: Mapping[str, Any]) -> str:
        asked = self._options.channel
        said = item.get(CHANNEL) or asked
        if not isinstance(said, str) or not said:
            raise Invalid(CHANNEL, "is missing; give one, or say --channel")
        if asked and said != asked:
            raise Invalid(CHANNEL, f"is {said!r:.60}, and --channel is {asked}; leave one of them out")
        return said

    def _id(self, item: Mapping[str, Any], line: int) -> str:
        prefix, own = self._options.id_prefix, item.get(ID)
        if own is None and self._options.numbers:
            return f"{prefix}-{line}"
        if isinstance(own, int) and not isinstance(own, bool):
            own = str(own)
        if not isinstance(own, str) or not own.strip():
            raise Invalid(ID, "is empty; every line needs an id of its own")
        if _is_address(own):
            raise Invalid(ID, "is a mail address; ids appear in logs: use another column")
        return f"{prefix}-{own.strip()}" if prefix else own.strip()


def _is_address(text: str) -> bool:
    try:
        address.split(text)
    except ValueError:
        return False
    return True
