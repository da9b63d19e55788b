"""How the entries of a file are written: CSV (RFC 4180) and JSON Lines. One entry is read at a time, from any
byte on, with no more of the file in memory than an entry and a chunk.

Campaigns read files in S3, and `mailroom import` on an operator's machine. Python's CSV reader gets the lines
of one entry at a time, so the byte at which the next entry begins is known.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from mailroom.aws.dynamo_values import MAX_LEVELS
from mailroom.errors import NUMBERS, Invalid, too_deep

CHUNK_BYTES = 256 * 1024
"""Asked for at once: more than a page of ordinary lines, so that a page is mostly one request."""
MAX_RECORD_BYTES = 256 * 1024
"""Bytes of one entry, with all its lines."""
MAX_COLUMNS = 1000
"""Columns of a CSV file: an entry has a value for each, also if its line has none."""
MAX_LINE_BYTES = 64 * 1024 * 1024
"""Beyond that a file has no lines, and the search for the next one would outlast the function."""

LOCATION = "audience.location"
"""The setting at fault where a file cannot be read at all."""
_BOM = b"\xef\xbb\xbf"
_NO_TEXT = (
    (b"\x1f\x8b", "compressed (gzip)", "unpack it with gunzip"),
    (b"PK\x03\x04", "compressed (zip, or a spreadsheet)", "put it there as plain text"),
    (b"\xff\xfe", "in UTF-16", "save it as UTF-8"),
    (b"\xfe\xff", "in UTF-16", "save it as UTF-8"),
)


class Position(Struct, frozen=True):
    """A place in a file: a byte's offset, and the number of the line that begins there, from 1."""

    offset: int
    line: int


class Readable(Protocol):
    """Bytes with lines in them: an object in S3, or a file on an operator's machine."""

    @property
    def size(self) -> int | None:
        """Bytes of the file; None before the first read."""
        ...

    def read(self, offset: int) -> bytes:
        """Bytes from the offset on; none: that is its end."""
        ...


class Lines:
    """Reads a file's lines forwards, and from any earlier place on again."""

    def __init__(self, source: Readable, start: Position) -> None:
        self._source = source
        self._bytes = b""
        self._base = start.offset
        """The offset of the first of the bytes."""
        self._at = 0
        self._line = start.line
        self.unclosed = 0
        """How far a quote was followed in vain: before that offset, an entry is one line. Otherwise a file of
        lines that each open a quote would be read once for each of them."""

    def skip_mark_of_utf8(self) -> None:
        """Skip the byte order mark that some programs put before the first line. Raises Invalid where the
        first bytes are those of a compressed file or of UTF-16."""
        self._fetch()
        for bytes_, is_, do in _NO_TEXT:
            if self._bytes.startswith(bytes_):
                raise Invalid(LOCATION, f"the file is {is_}; {do}")
        if self._bytes.startswith(_BOM):
            self._at = len(_BOM)

    def mark(self) -> Position:
        """Where the next line begins; `back` can return to it."""
        return Position(self._base + self._at, self._line)

    def back(self, mark: Position) -> None:
        """Go back to a place where a line begins."""
        if mark.offset < self._base:  # dropped: it is read again
            self._bytes, self._base = b"", mark.offset
        self._at, self._line = mark.offset - self._base, mark.line

    def next(self) -> bytes:
        """The next line with its line break; empty: there is none. Raises ParseError, behind the line, if the
        line is longer than an entry may be."""
        skipped = 0
        while not (end := self._bytes.find(b"\n", self._at) + 1):
            if (size := len(self._bytes) - self._at) > MAX_RECORD_BYTES:
                self._at, skipped = len(self._bytes), skipped + size
            if skipped > MAX_LINE_BYTES:
                long = f"over {MAX_LINE_BYTES // 2**20} MiB"
                raise Invalid(LOCATION, f"line {self._line} has {long}; put a line break behind each entry")
            if not self._fetch():
                end = len(self._bytes)
                break
        line = self._bytes[self._at : end]
        self._at = end
        self._line += 1
        if skipped or len(line) > MAX_RECORD_BYTES:
            raise ParseError(None, TOO_LONG)
        return line

    def ended(self) -> bool:
        """Whether the file has no further byte. False while its size is not known."""
        return self._source.size is not None and self._base + self._at >= self._source.size

    def _fetch(self) -> bool:
        """Read more bytes; those before the present line are dropped."""
        more = self._source.read(self._base + len(self._bytes))
        self._bytes = self._bytes[self._at :] + more
        self._base, self._at = self._base + self._at, 0
        return bool(more)


TOO_LONG = f"is longer than {MAX_RECORD_BYTES // 1024} KiB; shorten it"
NO_ENTRY = "is followed by no entry; put each one on a line of its own, which ends with LF or CR LF"
"""The problem of a file that has bytes and no entry."""
DELIMITERS = (b",", b";", b"\t", b"|")
"""Delimiters that a header may have. A file may name another one in its first line, such as `sep=^`, which
Excel knows as well."""
_NAMED_DELIMITER = re.compile(rb'"?sep=([\t -!#-~])"?[\r\n]*', re.IGNORECASE)
_QUOTED = re.compile(rb'"[^"]*"')
_NOT_CLOSED = f"has a quote that is not closed within {MAX_RECORD_BYTES // 1024} KiB; close it, or double it"
_STRAY = (
    "has text behind a closing quote, or a carriage return alone; double the quotes within a cell, and end "
    "lines with LF or CR LF"
)
_NOT_UTF8 = "is not UTF-8; save the file as UTF-8"
_NO_NUMBER = "holds a number that no message can carry; use up to 38 digits, 1E-130 to 1E+125"
csv.field_size_limit(MAX_RECORD_BYTES)
_decoder = msgspec.json.Decoder(float_hook=NUMBERS.create_decimal)
"""Numbers keep all their digits; a float keeps some seventeen. A number that no item can hold raises
ArithmeticError here: later, it would fail the messages of others as well."""


class ParseError(Exception):
    """An entry that cannot be read, because of a `problem` in the `cell`, counted from 0, or in the whole
    entry if `cell` is None."""

    def __init__(self, cell: int | None, problem: str) -> None:
        super().__init__(problem)
        self.cell = cell
        self.problem = problem


class FileEntry(Struct, frozen=True):
    """One line, or several where a quoted cell holds line breaks: where it begins, and where what follows it
    does. `values` are by column; None: the line is empty, or has a `problem` in that `column` ("": in all of
    it)."""

    begin: Position
    end: Position
    values: dict[str, Any] | None = None
    column: str = ""
    problem: str = ""


class JsonLinesFormat:
    """A JSON object a line."""

    header = ()

    def values(self, lines: Lines) -> dict[str, Any] | None:
        """The object of the next line; None: the line is empty. Raises ParseError."""
        line = lines.next()
        if not line.strip():
            return None
        try:
            values = _decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            # msgspec's words name a place, and never what stands there.
            words = str(error) if isinstance(error, msgspec.DecodeError) else type(error).__name__
            raise ParseError(None, f"is not JSON in UTF-8 ({words}); correct it") from None
        except ArithmeticError:
            raise ParseError(None, _NO_NUMBER) from None
        if not isinstance(values, dict):
            raise ParseError(None, "is not a JSON object; use one a line")
        if too_deep(line, values, 1 + MAX_LEVELS):
            raise ParseError(None, f"has over {MAX_LEVELS} levels of lists and objects; use fewer")
        return values


class CsvFormat(Struct, frozen=True):
    """Cells by the columns of the header."""

    delimiter: str
    header: Sequence[str]

    def values(self, lines: Lines) -> dict[str, Any] | None:
        """The cells of the next record, in which empty ones at its end may be missing; None: it has none but
        empty ones. Raises ParseError."""
        cells, columns = _record(lines, self.delimiter), len(self.header)
        if not any(cells):
            return None
        if any(cells[columns:]):
            problem = (
                f"has {len(cells)} cells where the header has {columns}; quote cells that hold the delimiter"
            )
            raise ParseError(None, problem)
        return dict(zip(self.header, [*cells, *[""] * (columns - len(cells))], strict=False))


Format = JsonLinesFormat | CsvFormat


def read_entry(lines: Lines, format_: Format) -> FileEntry:
    """The next entry. After a faulty entry, the one behind it can be read."""
    begin = lines.mark()
    try:
        values = format_.values(lines)
    except ParseError as fault:
        header, cell = format_.header, fault.cell
        column = header[cell] if cell is not None and cell < len(header) else ""
        return FileEntry(begin, lines.mark(), None, column, fault.problem)
    return FileEntry(begin, lines.mark(), values)


def read_header(lines: Lines) -> CsvFormat:
    """Read the columns that a CSV file's first line names, and the delimiter: the one of DELIMITERS that
    stands there most often, or that of a line `sep=;` before it. Raises Invalid."""
    begin, problem, cells = lines.mark(), "is empty; it must name the columns", list[str]()
    try:
        first = lines.next()
        if named := _NAMED_DELIMITER.fullmatch(first):
            begin, delimiter = lines.mark(), named[1].decode("latin-1")
        else:
            lines.back(begin)
            delimiter = max(DELIMITERS, key=_QUOTED.sub(b"", first).count).decode()
        cells = _record(lines, delimiter)
        if len(cells) > MAX_COLUMNS:
            problem = f"has {len(cells)} columns; use at most {MAX_COLUMNS}"
    except ParseError as fault:
        problem = fault.problem
    if not 0 < len(cells) <= MAX_COLUMNS:
        raise Invalid("audience.columns", f"line {begin.line}, the header, {problem}")
    return CsvFormat(delimiter, [cell.strip() for cell in cells])


def _record(lines: Lines, delimiter: str) -> list[str]:
    """The next record; [] for an empty line, and at the end. Raises ParseError. After a fault of quotes, the
    second line is next: what comes after a quote that was not closed may be fine."""
    line = lines.next()
    second = lines.mark()
    try:
        cells = next(csv.reader(_lines_of_record(line, lines), delimiter=delimiter, strict=True), [])
    except (csv.Error, ParseError) as error:
        lines.unclosed = max(lines.unclosed, lines.mark().offset)
        lines.back(second)
        raise ParseError(None, _STRAY if isinstance(error, csv.Error) else _NOT_CLOSED) from None
    for at, cell in enumerate(cells):
        try:
            cell.encode()
        except UnicodeEncodeError:
            raise ParseError(at, _NOT_UTF8) from None
        if "\0" in cell:
            raise ParseError(at, "holds a NUL character; take it out")
    return cells


def _lines_of_record(line: bytes, lines: Lines) -> Iterator[str]:
    """A record's lines: the reader asks for a further one while a quote is open. Bytes that are not UTF-8 are
    lone surrogates. Raises ParseError for a record without an end."""
    size = 0
    while line and (size := size + len(line)) <= MAX_RECORD_BYTES:
        yield line.decode(errors="surrogateescape")
        line = b"" if lines.mark().offset < lines.unclosed else lines.next()
    if size:
        raise ParseError(None, _NOT_CLOSED)
