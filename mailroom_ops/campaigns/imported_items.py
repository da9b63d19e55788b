"""Converts an entry of a file to a mailbox item, or to a fault."""

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
from mailroom_ops.shared.refusals import Refused

Format = Literal["csv", "jsonl"]
ID, CHANNEL = "id", "event_type"
_attributes = cache(attributes_of)


class Options(Struct, frozen=True, kw_only=True):
    """Options for the conversion of lines to messages. To continue an import, use the same options: with
    other options, a line may become a message with another id."""

    format: Format
    channel: str
    """Channel of all messages; empty if each line has a channel of its own."""
    id_prefix: str
    """Prefix of each id; empty if the file contains complete ids. The id of a line without one is the prefix
    and the line number."""


class LineFault(Struct, frozen=True):
    """Fault in a line."""

    line: int
    """Number of the line in the file; the first line has number 1."""
    column: str
    """Faulty column; empty if the whole line is faulty."""
    problem: str


class Items:
    """Converts lines to items. `lanes` has the lanes of each channel of the stage. A message uses the lane
    bulk if its channel has it, unless its line names another lane."""

    def __init__(
        self, options: Options, lanes: Mapping[str, list[str]], validator: Validator, previews: Previews
    ) -> None:
        self._options = options
        self._lanes = lanes
        self._validator = validator
        self._previews = previews

    def check_header(self, header: list[str]) -> None:
        """Raise Refused if a file with these columns cannot be imported with these options."""
        try:
            check_columns(header, ())
        except Invalid as fault:
            raise Refused(f"The header: {fault.problem}.") from None
        if not self._options.channel and CHANNEL not in header:
            raise Refused("The channel is missing. Use --channel, or a column event_type.")
        if not self._options.id_prefix and ID not in header:
            raise Refused(
                "The lines have no ids: name the column with the ids `id`, or use --id-prefix, such as "
                "--id-prefix people-2026-11-21, to make ids of the line numbers. No other file may have "
                "the same prefix."
            )

    def judged(self, entry: FileEntry) -> dict[str, Any] | LineFault:
        """Return the item of an entry if the stage would accept it, or else the entry's fault."""
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
        """Return the item of a line. Raises Invalid, which names the attribute."""
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
            raise Invalid(CHANNEL, "is missing; give one, or use --channel")
        if default and channel != default:
            raise Invalid(CHANNEL, f"is {channel!r:.60}, but --channel is {default}; leave one of them out")
        return channel

    def _id(self, item: Mapping[str, Any], line: int) -> str:
        prefix, own_id = self._options.id_prefix, item.get(ID)
        if own_id is None and prefix:
            return f"{prefix}-{line}"
        if isinstance(own_id, int) and not isinstance(own_id, bool):
            own_id = str(own_id)
        if not isinstance(own_id, str) or not own_id.strip():
            raise Invalid(ID, "is empty, or neither text nor an integer; every line needs an id of its own")
        if _is_address(own_id):
            raise Invalid(ID, "is a mail address; ids appear in logs: use another column")
        return f"{prefix}-{own_id.strip()}" if prefix else own_id.strip()


def _is_address(text: str) -> bool:
    try:
        address.split(text)
    except ValueError:
        return False
    return True
