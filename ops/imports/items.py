"""One entry's values as an item of the mailbox."""

from collections.abc import Collection, Mapping
from functools import cache
from typing import Any

from mailroom.errors import Invalid
from mailroom.message import address
from ops.imports.entries import LINE, REASON
from ops.imports.options import Options
from ops.messages.items import Attributes, attributes_of
from ops.screen import Refused

ID, CHANNEL = "id", "event_type"
_MAX_LINE_DIGITS = 18
_attributes = cache(attributes_of)


class Items:
    """Makes items by the options. `lanes` are those that each channel of the stage has: what comes in
    thousands goes by the one for bulk, where there is one and neither line nor option says otherwise."""

    def __init__(self, options: Options, lanes: Mapping[str, list[str]]) -> None:
        self._options = options
        self._lanes = lanes
        self._numbered = bool(options.id_prefix) and not options.id_column

    def check_header(self, header: list[str]) -> None:
        """Raise Refused where these columns cannot make messages by the options."""
        there = set(header)
        for option, columns in (("--map", self._options.maps), ("--id-column", [self._options.id_column])):
            for column in columns:
                if column and column not in there:
                    raise Refused(f"{option}: there is no column {column!r:.60}; {_listed(header)}.")
        for column, attribute in self._options.maps.items():
            if attribute in there and attribute not in self._options.maps:
                raise Refused(f"--map {column}={attribute}: {attribute} is a column as well; map that, too.")
        attributes = {self._options.attribute(each) for each in header}
        if not self._options.channel and CHANNEL not in attributes:
            raise Refused("Which channel is it? Say --channel mail, or name a column event_type.")
        if not self._options.id_prefix and not self._options.id_column and ID not in attributes:
            raise Refused(
                "The lines have no ids: name a column that has one by --id-column, or let them be made of "
                "the lines' numbers by --id-prefix, which no other file may have, such as "
                "--id-prefix people-2026-11-21."
            )

    def numbered(self, columns: Collection[str]) -> bool:
        """Whether ids are made of where lines stand in the file, and not of what stands in them."""
        there = {self._options.attribute(each) for each in columns}
        return self._numbered and not there & {ID, LINE}

    def item(self, line: int, values: Mapping[str, Any]) -> dict[str, Any]:
        """The item of a line. Raises Invalid, which names the attribute."""
        item = {self._options.attribute(column): value for column, value in values.items()}
        number, _ = item.pop(LINE, None), item.pop(REASON, None)
        item[CHANNEL] = self._channel(item)
        known = _attributes(item[CHANNEL])
        id_ = self._id(values, item, line if number is None else number)
        item = {name: value for name, value in item.items() if not _says_nothing(known, name, value)}
        if self._options.format == "csv":
            item = {name: known.value(name, text) for name, text in item.items()}
        for name, text in self._options.sets.items():
            item[name] = known.value(name, text)
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

    def _id(self, values: Mapping[str, Any], item: Mapping[str, Any], number: object) -> str:
        prefix, column = self._options.id_prefix, self._options.id_column
        own = values.get(column) if column else item.get(ID)
        if own is None and self._numbered:
            return f"{prefix}-{_number(number)}"
        if isinstance(own, int) and not isinstance(own, bool):
            own = str(own)
        if not isinstance(own, str) or not own.strip():
            raise Invalid(ID, "is empty; every line needs an id of its own")
        if _is_address(own):
            raise Invalid(ID, "is a mail address; ids appear in logs: use another column")
        return f"{prefix}-{own.strip()}" if prefix else own.strip()


def _number(number: object) -> int:
    """A line's own, or what a file of refused lines says that it was."""
    text = str(number)
    if isinstance(number, bool) or not (text.isascii() and text.isdigit() and len(text) <= _MAX_LINE_DIGITS):
        raise Invalid(LINE, "is no line's number; leave it as it was, for the id is made of it")
    return int(text)


def _says_nothing(known: Attributes, name: str, value: Any) -> bool:
    """An empty cell of what the channel knows. A variable of the template may well be empty."""
    return value == "" and known.known(name)


def _is_address(text: str) -> bool:
    if "@" not in text:
        return False
    try:
        address.split(text)
    except ValueError:
        return False
    return True


def _listed(header: list[str]) -> str:
    return f"it has: {', '.join(header):.300}"
