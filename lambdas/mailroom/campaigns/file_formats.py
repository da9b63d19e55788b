"""Formats of files: CSV (RFC 4180) and JSON Lines. One entry is read at a time, from any byte on, so that
memory holds only an entry and a chunk of the file.

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
"""Bytes of a request: more than a page of ordinary lines, so that a page is mostly one request."""
MAX_RECORD_BYTES = 256 * 1024
"""Maximum number of bytes of an entry, with all its lines."""
MAX_COLUMNS = 1000
"""Maximum number of columns of a CSV file: an entry has a value for each, even if its line is shorter."""
MAX_LINE_BYTES = 64 * 1024 * 1024
"""Maximum number of bytes of a line: the search for a later line break would outlast the function."""

LOCATION = "audience.location"
"""Setting at fault if a file cannot be read at all."""
_BOM = b"\xef\xbb\xbf"
_NO_TEXT = (
    (b"\x1f\x8b", "compressed (gzip)", "unpack it with gunzip"),
    (b"PK\x03\x04", "compressed (zip, or a spreadsheet)", "put it there as plain text"),
    (b"\xff\xfe", "in UTF-16", "save it as UTF-8"),
    (b"\xfe\xff", "in UTF-16", "save it as UTF-8"),
)


class Position(Struct, frozen=True):
    """Place in a file: the offset of a byte, and the number of the line that begins there, from 1."""

    offset: int
    line: int


class Readable(Protocol):
    """File with lines: an object in S3, or a file on an operator's machine."""

    @property
    def size(self) -> int | None:
        """Size of the file in bytes; None before the first read."""
        ...

    def read(self, offset: int) -> bytes:
        """Read bytes from the offset on; an empty result is the end of the file."""
        ...


class Lines:
    """Reads a file's lines forwards, and from any earlier place on again."""

    def __init__(self, source: Readable, start: Position) -> None:
        self._source = source
        self._bytes = b""
        self._base = start.offset
        """Offset of the first byte in memory."""
        self._at = 0
        self._line = start.line
        self.unclosed = 0
        """Offset up to which the search for a closing quote has failed: before it, an entry is one line.
        Otherwise a file whose lines each open a quote would be read once for each line."""

    def skip_mark_of_utf8(self) -> None:
        """Skip the byte order mark that some programs put before the first line. Raises Invalid for a
        compressed file or UTF-16, by the first bytes."""
        self._fetch()
        for bytes_, is_, do in _NO_TEXT:
            if self._bytes.startswith(bytes_):
                raise Invalid(LOCATION, f"the file is {is_}; {do}")
        if self._bytes.startswith(_BOM):
            self._at = len(_BOM)

    def mark(self) -> Position:
        """Return the beginning of the next line, to which `back` can return."""
        return Position(self._base + self._at, self._line)

    def back(self, mark: Position) -> None:
        """Go back to the beginning of an earlier line."""
        if mark.offset < self._base:  # the line is not in memory any more
            self._bytes, self._base = b"", mark.offset
        self._at, self._line = mark.offset - self._base, mark.line

    def next(self) -> bytes:
        """Read the next line with its line break; an empty result is the end of the file. Raises ParseError
        for a line that is longer than an entry may be; the line is skipped."""
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
        """Return whether the file has ended; False before the first read, which tells the size."""
        return self._source.size is not None and self._base + self._at >= self._source.size

    def _fetch(self) -> bool:
        """Read further bytes, and drop those before the present line."""
        chunk = self._source.read(self._base + len(self._bytes))
        self._bytes = self._bytes[self._at :] + chunk
        self._base, self._at = self._base + self._at, 0
        return bool(chunk)


TOO_LONG = f"is longer than {MAX_RECORD_BYTES // 1024} KiB; shorten it"
NO_ENTRY = "is followed by no entry; put each one on a line of its own, which ends with LF or CR LF"
"""Problem of a file that has bytes but no entry."""
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
"""Decoder that keeps all digits of numbers; a float keeps some seventeen. A number that an item cannot hold
raises ArithmeticError here: later, it would fail the messages of others as well."""


class ParseError(Exception):
    """Raised for an entry with a `problem` in the `cell`, counted from 0, or in the whole entry if `cell` is
    None."""

    def __init__(self, cell: int | None, problem: str) -> None:
        super().__init__(problem)
        self.cell = cell
        self.problem = problem


class FileEntry(Struct, frozen=True):
    """Entry of a file: a line, or several lines if a quoted cell holds line breaks."""

    begin: Position
    end: Position
    """Beginning of the next entry."""
    values: dict[str, Any] | None = None
    """Values by column; None for an empty line, or one with a problem."""
    column: str = ""
    """Column of the problem; empty for the whole entry."""
    problem: str = ""


class JsonLinesFormat:
    """Lines with a JSON object each."""

    header = ()

    def values(self, lines: Lines) -> dict[str, Any] | None:
        """Read the object of the next line, or None for an empty line. Raises ParseError."""
        line = lines.next()
        if not line.strip():
            return None
        try:
            values = _decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            # Only errors of msgspec are quoted, because they name a position and do not quote a value.
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
    """Lines with cells, by the columns of the header."""

    delimiter: str
    header: Sequence[str]

    def values(self, lines: Lines) -> dict[str, Any] | None:
        """Read the cells of the next record, or None if all are empty. Empty cells at its end may be missing.
        Raises ParseError."""
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
    """Read the next entry. After an entry with a problem, the entry behind it can be read."""
    begin = lines.mark()
    try:
        values = format_.values(lines)
    except ParseError as fault:
        header, cell = format_.header, fault.cell
        column = header[cell] if cell is not None and cell < len(header) else ""
        return FileEntry(begin, lines.mark(), None, column, fault.problem)
    return FileEntry(begin, lines.mark(), values)


def read_header(lines: Lines) -> CsvFormat:
    """Read the header of a CSV file. The delimiter is the most frequent one of DELIMITERS in the header, or
    that of a line `sep=;` before it. Raises Invalid."""
    begin, problem, cells = lines.mark(), "is empty; it must name the columns", list[str]()
    try:
        first = lines.next()
        if match := _NAMED_DELIMITER.fullmatch(first):
            begin, delimiter = lines.mark(), match[1].decode("latin-1")
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
    """Read the next record, which is empty for an empty line and at the end. Raises ParseError. After a
    problem with quotes, the record's second line is next: lines after an open quote may be valid."""
    line = lines.next()
    second = lines.mark()
    try:
        cells = next(csv.reader(_lines_of_record(line, lines), delimiter=delimiter, strict=True), [])
    except (csv.Error, ParseError) as error:
        lines.unclosed = max(lines.unclosed, lines.mark().offset)
        lines.back(second)
        raise ParseError(None, _STRAY if isinstance(error, csv.Error) else _NOT_CLOSED) from None
    for number, cell in enumerate(cells):
        try:
            cell.encode()
        except UnicodeEncodeError:
            raise ParseError(number, _NOT_UTF8) from None
        if "\0" in cell:
            raise ParseError(number, "holds a NUL character; take it out")
    return cells


def _lines_of_record(line: bytes, lines: Lines) -> Iterator[str]:
    """Yield the lines of a record: csv reads a further line while a quote is open. Bytes that are not UTF-8
    become lone surrogates. Raises ParseError for a record without an end."""
    size = 0
    while line and (size := size + len(line)) <= MAX_RECORD_BYTES:
        yield line.decode(errors="surrogateescape")
        line = b"" if lines.mark().offset < lines.unclosed else lines.next()
    if size:
        raise ParseError(None, _NOT_CLOSED)
