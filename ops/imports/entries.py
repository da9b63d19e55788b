"""A file's lines as entries, one after another from any place on; what is wrong with one is said, and the
next one is read."""

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from mailroom.campaigns.csv_lines import CsvAudience
from mailroom.campaigns.csv_records import Broken, record
from mailroom.campaigns.definition import Csv, JsonLines
from mailroom.campaigns.json_lines import JsonLinesAudience
from mailroom.campaigns.line_pages import TOO_LONG
from mailroom.campaigns.rows import Rows
from mailroom.campaigns.s3_lines import Lines, Mark, TooLong
from mailroom.errors import Invalid
from ops.imports.options import Options
from ops.imports.source import Source
from ops.screen import Refused

LINE, REASON = "mailroom_line", "mailroom_reason"
"""Columns of a file of refused lines: the line's number in the first file, by which its id is made, and why
it was refused."""


class Entry(Struct, frozen=True):
    """One line, or several where a quoted cell holds line breaks: where it begins, and where what follows it
    does. `values` by column; None: it cannot be read, for the `problem` in that `column`."""

    begin: Mark
    end: Mark
    values: dict[str, Any] | None
    column: str = ""
    problem: str = ""


class _Taken(Rows):
    """What the readers of audiences say of one entry, whatever an audience would need of it."""

    def __init__(self) -> None:
        super().__init__("", ())
        self.values: dict[str, Any] | None = None
        self.fault: tuple[str, str] | None = None

    def add(self, where: str, values: dict[str, Any]) -> None:  # noqa: ARG002 - its place is known
        """One entry that can be read."""
        self.values = values

    def refuse(self, where: str, column: str, problem: str) -> None:  # noqa: ARG002
        """One that cannot."""
        self.fault = column, problem


class Entries:
    """Reads one file. `header` has the columns of a CSV file; [] of any other."""

    def __init__(self, source: Source, options: Options) -> None:
        self._source = source
        self._options = options
        # Only what they say of one entry is asked: they read no audience, and ask S3 nothing.
        client: Any = None
        self._reader: CsvAudience | JsonLinesAudience
        if options.format == "csv":
            self._reader = CsvAudience(Csv(str(source.path), "", (), options.delimiter), client)
        else:
            self._reader = JsonLinesAudience(JsonLines(str(source.path), ""), client)
        self.header: list[str] = []
        lines = source.lines(Mark(0, 1))
        self._skip_mark(lines)
        self.top = lines.mark()
        """Where the first line begins, behind a byte order mark."""
        if options.format == "csv":
            self.header = self._header(lines)
        self.start = lines.mark()
        """Where the first entry begins."""

    def after(self, place: Mark) -> Iterator[Entry]:
        """All entries from that place on. Raises Refused where these are no lines at all."""
        lines = self._source.lines(place)
        begin = lines.mark()
        while begin.offset < self._source.size:
            entry = self._entry(lines, begin)
            if entry is not None:
                yield entry
            begin = lines.mark()

    def _entry(self, lines: Lines, begin: Mark) -> Entry | None:
        taken = _Taken()
        try:
            self._reader.entry(lines, begin, taken, {"header": self.header})
        except TooLong:
            taken.fault = "", TOO_LONG
        except Invalid as fault:
            raise Refused(f"{self._source.path}: {fault.problem}.") from None
        if taken.fault is not None:
            return Entry(begin, lines.mark(), None, *taken.fault)
        return None if taken.values is None else Entry(begin, lines.mark(), taken.values)

    def _skip_mark(self, lines: Lines) -> None:
        try:
            lines.skip_mark_of_utf8()
        except Invalid as fault:
            raise Refused(f"{self._source.path}: {fault.problem}.") from None

    def _header(self, lines: Lines) -> list[str]:
        try:
            cells = record(lines, lines.mark(), self._options.delimiter.encode())
            header = [cell.decode().strip() for cell in cells]
        except UnicodeDecodeError:
            raise self._no_header("is not UTF-8; save the file as UTF-8") from None
        except TooLong:
            raise self._no_header(TOO_LONG) from None
        except Broken as broken:
            raise self._no_header(broken.problem) from None
        problem = _problem(header)
        if problem:
            raise self._no_header(problem)
        return header

    def _no_header(self, problem: str) -> Refused:
        return Refused(f"{self._source.path}: line 1, the header, {problem}.")


def _problem(header: list[str]) -> str:
    """What is wrong with the columns' names; "": nothing."""
    if not header:
        return "is empty; it must name the columns"
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
