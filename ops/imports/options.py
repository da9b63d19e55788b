"""How the lines of a file become messages."""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from msgspec import Struct

from mailroom.channels.contracts import CONTRACTS
from ops.messages.items import pairs
from ops.screen import Refused

Format = Literal["csv", "jsonl"]
ENDINGS: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}
MAX_PREFIX_BYTES = 100


class Options(Struct, frozen=True, kw_only=True):
    """What was asked for, as far as it makes messages of lines: another of it is another import.

    `channel` "": each line says its own. `id_prefix` "": ids stand in the file. `sets` are attributes of
    every message, `maps` name the attribute that a column is.
    """

    format: Format
    delimiter: str
    channel: str
    id_prefix: str
    id_column: str
    sets: dict[str, str]
    maps: dict[str, str]

    def attribute(self, column: str) -> str:
        """What a column is called in the message."""
        return self.maps.get(column, column)

    def column(self, attribute: str) -> str:
        """Where an attribute stands in the file; "" where it does not come from there."""
        if attribute in self.sets:
            return ""
        if attribute == "id" and self.id_column:
            return self.id_column
        named = (column for column, mapped in self.maps.items() if mapped == attribute)
        return next(named, attribute)


def options_of(
    file: Path,
    *,
    channel: str | None,
    format_: Format | None,
    delimiter: str | None,
    id_prefix: str | None,
    id_column: str | None,
    sets: Iterable[str],
    maps: Iterable[str],
) -> Options:
    """The options of a command. Raises Refused for what cannot be meant."""
    if channel is not None and channel not in CONTRACTS:
        raise Refused(f"--channel {channel!r:.60} is none; there are: {', '.join(CONTRACTS)}.")
    if id_prefix is not None and not _is_prefix(id_prefix):
        raise Refused("--id-prefix is no begin of an id; use 1 to 100 printable characters, and no address.")
    found = format_ or ENDINGS.get(file.suffix.lower())
    if found is None:
        raise Refused(f"{file.name} ends neither in .csv nor in .jsonl; say which it is by --format.")
    mapped = pairs(maps, "--map")
    if len(set(mapped.values())) < len(mapped):
        raise Refused("--map names one attribute for two columns; keep one of them.")
    constant = pairs(sets, "--set")
    for name, instead in (("id", "--id-column or --id-prefix"), ("event_type", "--channel")):
        if name in constant:
            raise Refused(f"--set {name}: is for each line, or said by {instead}.")
    return Options(
        format=found,
        delimiter=_delimiter(file, delimiter),
        channel=channel or "",
        id_prefix=id_prefix or "",
        id_column=id_column or "",
        sets=constant,
        maps=mapped,
    )


def _is_prefix(text: str) -> bool:
    return text.isprintable() and 0 < len(text.encode()) <= MAX_PREFIX_BYTES and "@" not in text


def _delimiter(file: Path, typed: str | None) -> str:
    found = typed or ("\t" if file.suffix.lower() == ".tsv" else ",")
    found = "\t" if found == "\\t" else found
    if len(found) != 1 or not found.isascii() or found in '"\r\n':
        raise Refused("--delimiter is not one ASCII character; use , or ; or \\t.")
    return found
