"""Convert an entry of a file to a mailbox item, or to the faults in the entry."""

from collections.abc import Mapping
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
    """Beginning of each id, or "" if the ids in the file are whole. With it, the number of a line without an
    id becomes the line's id."""


class LineFault(Struct, frozen=True):
    """Fault in a line."""

    line: int
    """Number of the line, as an editor counts."""
    column: str
    """Column at fault; empty for the whole line."""
    problem: str


class Items:
    """Converter of lines to items, by the options. `lanes` are the lanes of each channel of the stage: a
    message uses the lane for bulk, if its channel has one, unless its line names another lane."""

    def __init__(
        self, options: Options, lanes: Mapping[str, list[str]], validator: Validator, previews: Previews
    ) -> None:
        self._options = options
        self._lanes = lanes
        self._validator = validator
        self._previews = previews

    def check_header(self, header: list[str]) -> None:
        """Raise Refused if these columns cannot make messages by the options."""
        try:
            check_columns(header, ())
        except Invalid as fault:
            raise Refused(f"The header: {fault.problem}.") from None
        if not self._options.channel and CHANNEL not in header:
            raise Refused("Which channel is it? Say --channel mail, or name a column event_type.")
        if not self._options.id_prefix and ID not in header:
            raise Refused(
                "The lines have no ids: name the column that has them `id`, or let them be made of the "
                "lines' numbers by --id-prefix, which no other file may have, such as --id-prefix "
                "people-2026-11-21."
            )

    def judged(self, entry: FileEntry) -> dict[str, Any] | LineFault:
        """Return the item of an entry, as the stage's own entrance would take it, or the entry's fault."""
        line = entry.begin.line
        if entry.values is None:
            return LineFault(line, entry.column, entry.problem)
        try:
            item = self.item(line, entry.values)
            self._previews.check(self._validator.validate(item))
        except Invalid as fault:
            return LineFault(line, fault.field, fault.problem)
        except Malformed as fault:
            return LineFault(line, "", str(fault))
        return item

    def item(self, line: int, values: Mapping[str, Any]) -> dict[str, Any]:
        """The item of a line. Raises Invalid, which names the attribute."""
        item = dict(values)
        item[CHANNEL] = self._channel(item)
        attributes = _attributes(item[CHANNEL])
        id_ = self._id(item, line)
        # An empty cell of an attribute counts as missing. A variable of the template may be empty.
        item = {name: value for name, value in item.items() if value != "" or not attributes.known(name)}
        if self._options.format == "csv":
            item = {name: attributes.value(name, text) for name, text in item.items()}
        if columns_alike := mistakes(CONTRACTS.get(item[CHANNEL], Message), item):
            item["audience_columns"] = sorted(columns_alike)
        if "lane" not in item and "bulk" in self._lanes.get(item[CHANNEL], ()):
            item["lane"] = "bulk"
        item[ID] = id_
        return item

    def _channel(self, item: Mapping[str, Any]) -> str:
        default = self._options.channel
        channel = item.get(CHANNEL) or default
        if not isinstance(channel, str) or not channel:
            raise Invalid(CHANNEL, "is missing; give one, or say --channel")
        if default and channel != default:
            raise Invalid(CHANNEL, f"is {channel!r:.60}, and --channel is {default}; leave one of them out")
        return channel

    def _id(self, item: Mapping[str, Any], line: int) -> str:
        prefix, own_id = self._options.id_prefix, item.get(ID)
        if own_id is None and prefix:
            return f"{prefix}-{line}"
        if isinstance(own_id, int) and not isinstance(own_id, bool):
            own_id = str(own_id)
        if not isinstance(own_id, str) or not own_id.strip():
            raise Invalid(ID, "is empty; every line needs an id of its own")
        if _is_address(own_id):
            raise Invalid(ID, "is a mail address; ids appear in logs: use another column")
        return f"{prefix}-{own_id.strip()}" if prefix else own_id.strip()


def _is_address(text: str) -> bool:
    try:
        address.split(text)
    except ValueError:
        return False
    return True
