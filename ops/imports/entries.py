"""A file's lines as entries, one after another from any place on; what is wrong with one is said, and the
next one is read."""

from collections.abc import Iterator

from mailroom.campaigns.files.formats import (
    CsvFormat,
    Entry,
    Format,
    JsonLinesFormat,
    read_entry,
    read_header,
)
from mailroom.campaigns.files.lines import Mark
from mailroom.errors import Invalid
from ops.imports.options import Options
from ops.imports.source import Source
from ops.screen import Refused

LINE, REASON = "mailroom_line", "mailroom_reason"
"""Columns of a file of refused lines: the line's number in the first file, by which its id is made, and why
it was refused."""


class Entries:
    """Reads one file. `header` has the columns of a CSV file; [] of any other."""

    def __init__(self, source: Source, options: Options) -> None:
        self._source = source
        self.header: list[str] = []
        lines = source.lines(Mark(0, 1))
        try:
            lines.skip_mark_of_utf8()
            self.top = lines.mark()
            """Where the first line begins, behind a byte order mark."""
            if options.format == "csv":
                self.header = read_header(lines, options.delimiter)
        except Invalid as fault:
            raise Refused(f"{source.path}: {fault.problem}.") from None
        problem = _problem(self.header) if options.format == "csv" else ""
        if problem:
            raise Refused(f"{source.path}: line 1, the header, {problem}.")
        csv = options.format == "csv"
        self._format: Format = CsvFormat(options.delimiter, self.header) if csv else JsonLinesFormat()
        self.start = lines.mark()
        """Where the first entry begins."""

    def after(self, place: Mark) -> Iterator[Entry]:
        """All entries from that place on. Raises Refused where these are no lines at all."""
        lines = self._source.lines(place)
        while not lines.ended():
            try:
                entry = read_entry(lines, self._format)
            except Invalid as fault:
                raise Refused(f"{self._source.path}: {fault.problem}.") from None
            if entry.values is not None or entry.problem:
                yield entry


def _problem(header: list[str]) -> str:
    """What is wrong with the columns' names; "": nothing."""
    if len(header) == 1:
        other = next((each for each in (";", "\t", "|") if each in header[0]), "")
        if other:
            shown = "\\t" if other == "\t" else other
            return f"is one column with {shown!r} in its name; say --delimiter '{shown}'"
    for at, name in enumerate(header, 1):
        if not name:
            return f"has no name for column {at}; give it one"
        if header.index(name) != at - 1:
            return f"names two columns {name!r:.60}; rename one"
    return ""
