"""Formats of files: CSV (RFC 4180) and JSON Lines. Entries are read one at a time, from any byte offset on,
so that only one entry and a chunk of the file are in memory.

Campaigns read files in S3 by this module, and `mailroom messages import` reads files on an operator's
machine. Python's CSV reader gets only the lines of one entry, so that the byte offset of the next entry is
known."""

import csv
import re
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from mailroom.aws.dynamo_values import MAX_LEVELS
from mailroom.errors import NUMBERS, Invalid, quantity, too_deep

CHUNK_BYTES = 256 * 1024
"""Number of bytes that one request reads. A page of ordinary lines is smaller, so it mostly takes one
request."""
MAX_RECORD_BYTES = 256 * 1024
"""Maximum number of bytes of an entry, including all its lines."""
MAX_COLUMNS = 1000
"""Maximum number of columns of a CSV file. The limit bounds the memory, because an entry has a value for each
column, even if its line is shorter."""
MAX_LINE_BYTES = 64 * 1024 * 1024
"""Maximum number of bytes of a line. The search for a line break after more bytes could exceed the function's
time-out."""

LOCATION = "audience.location"
"""Name of the setting in errors about a whole file."""
_BOM = b"\xef\xbb\xbf"
_NO_TEXT = (
    (b"\x1f\x8b", "compressed (gzip)", "unpack it with gunzip"),
    (b"PK\x03\x04", "compressed (zip, or a spreadsheet)", "put it there as plain text"),
    (b"\xff\xfe", "in UTF-16", "save it as UTF-8"),
    (b"\xfe\xff", "in UTF-16", "save it as UTF-8"),
)


class Position(Struct, frozen=True):
    """Position in a file: the byte offset, and the number of the line that begins there, counted from 1."""

    offset: int
    line: int


class Readable(Protocol):
    """File that can be read from any offset: an object in S3, or a file on an operator's machine."""

    @property
    def size(self) -> int | None:
        """Size of the file in bytes; None before the first read."""
        ...

    def read(self, offset: int) -> bytes:
        """Return bytes from the offset on, or b"" at the end of the file."""
        ...


class Lines:
    """Reads a file line by line, and can go back to the beginning of an earlier line."""

    def __init__(self, source: Readable, start: Position) -> None:
        self._source = source
        self._bytes = b""
        self._base = start.offset
        """Offset of the first byte in memory."""
        self._at = 0
        self._line = start.line
        self.unclosed = 0
        """Offset up to which an earlier search for a closing quote has failed. Entries before this offset are
        read as single lines. Otherwise, in a file in which each line opens a quote, the search would be
        repeated for each line."""

    def skip_mark_of_utf8(self) -> None:
        """Skip the byte order mark that some programs write before the first line. Raises Invalid if the
        first bytes are those of a compressed file or of UTF-16."""
        self._fetch()
        for bytes_, is_, do in _NO_TEXT:
            if self._bytes.startswith(bytes_):
                raise Invalid(LOCATION, f"the file is {is_}; {do}")
        if self._bytes.startswith(_BOM):
            self._at = len(_BOM)

    def mark(self) -> Position:
        """Return the position of the next line, which `back` accepts."""
        return Position(self._base + self._at, self._line)

    def back(self, mark: Position) -> None:
        """Go back to the beginning of an earlier line."""
        if mark.offset < self._base:  # the line is not in memory any more
            self._bytes, self._base = b"", mark.offset
        self._at, self._line = mark.offset - self._base, mark.line

    def next(self) -> bytes:
        """Return the next line with its line break, or b"" at the end of the file. Raises ParseError if the
        line is longer than the maximum of an entry, and skips the line. Raises Invalid if it is longer than
        MAX_LINE_BYTES."""
        skipped = 0
        while not (end := self._bytes.find(b"\n", self._at) + 1):
            if (size := len(self._bytes) - self._at) > MAX_RECORD_BYTES:
                self._at, skipped = len(self._bytes), skipped + size
            if skipped > MAX_LINE_BYTES:
                long = f"over {MAX_LINE_BYTES // 2**20} MiB"
                raise Invalid(LOCATION, f"line {self._line} has {long}; put a line break after each entry")
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
        """Return whether the end of the file is reached; False before the first read, when the size is
        unknown."""
        return self._source.size is not None and self._base + self._at >= self._source.size

    def _fetch(self) -> bool:
        """Read further bytes, and drop the bytes before the current line from memory. Returns False at the
        end of the file."""
        chunk = self._source.read(self._base + len(self._bytes))
        self._bytes = self._bytes[self._at :] + chunk
        self._base, self._at = self._base + self._at, 0
        return bool(chunk)


TOO_LONG = f"is longer than {MAX_RECORD_BYTES // 1024} KiB; shorten it"
NO_ENTRY = "is the only line; put each entry on a separate line, which ends with LF or CR LF"
"""Problem of a file that is not empty but lacks entries."""
DELIMITERS = (b",", b";", b"\t", b"|")
"""Delimiters that are recognized in a header. A file can set another delimiter in its first line, such as
`sep=^`, which Excel supports as well."""
_NAMED_DELIMITER = re.compile(rb'"?sep=([\t -!#-~])"?[\r\n]*', re.IGNORECASE)
_QUOTED = re.compile(rb'"[^"]*"')
_NOT_CLOSED = f"has a quote that is not closed within {MAX_RECORD_BYTES // 1024} KiB; close it, or double it"
_STRAY = (
    "has text after a closing quote, or a single carriage return; double the quotes within a cell, and end "
    "lines with LF or CR LF"
)
_NOT_UTF8 = "is not UTF-8; save the file as UTF-8"
_NO_NUMBER = "holds a number that DynamoDB cannot store; use up to 38 digits, 1E-130 to 1E+125"
csv.field_size_limit(MAX_RECORD_BYTES)
_decoder = msgspec.json.Decoder(float_hook=NUMBERS.create_decimal)
"""Decoder that keeps all digits of numbers, while a float has only about 17. A number that a DynamoDB item
cannot store raises ArithmeticError here. Without this check, the later error would also affect the other
people of the chunk."""


class ParseError(Exception):
    """Error of an invalid entry. `problem` describes the error, and `cell` is the number of the invalid cell,
    counted from 0, or None if the whole entry is invalid."""

    def __init__(self, cell: int | None, problem: str) -> None:
        super().__init__(problem)
        self.cell = cell
        self.problem = problem


class FileEntry(Struct, frozen=True):
    """Entry of a file: a line, or several lines if a quoted cell contains line breaks."""

    begin: Position
    end: Position
    """Position of the next entry."""
    values: dict[str, Any] | None = None
    """Values by column; None for an empty line or an invalid entry."""
    column: str = ""
    """Column with the invalid value; empty if the whole entry is invalid."""
    problem: str = ""


class JsonLinesFormat:
    """Format in which each line is a JSON object."""

    header = ()

    def values(self, lines: Lines) -> dict[str, Any] | None:
        """Return the object in the next line, or None for an empty line. Raises ParseError."""
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
            raise ParseError(None, "is not a JSON object; use one per line")
        if too_deep(line, values, 1 + MAX_LEVELS):
            raise ParseError(None, f"has over {MAX_LEVELS} levels of lists and objects; use fewer")
        return values


class CsvFormat(Struct, frozen=True):
    """Format in which a line has a cell for each column of the header."""

    delimiter: str
    header: Sequence[str]

    def values(self, lines: Lines) -> dict[str, Any] | None:
        """Return the cells of the next record by column, or None if all are empty. Missing cells at the end
        of the record become empty. Raises ParseError."""
        cells, columns = _record(lines, self.delimiter), len(self.header)
        if not any(cells):
            return None
        if any(cells[columns:]):
            has = quantity(len(cells), "cell")
            problem = f"has {has}, but the header has {columns}; quote cells that hold the delimiter"
            raise ParseError(None, problem)
        return dict(zip(self.header, [*cells, *[""] * (columns - len(cells))], strict=False))


Format = JsonLinesFormat | CsvFormat


def read_entry(lines: Lines, format_: Format) -> FileEntry:
    """Return the next entry. After an invalid entry, the following entry can still be read."""
    begin = lines.mark()
    try:
        values = format_.values(lines)
    except ParseError as fault:
        header, cell = format_.header, fault.cell
        column = header[cell] if cell is not None and cell < len(header) else ""
        return FileEntry(begin, lines.mark(), None, column, fault.problem)
    return FileEntry(begin, lines.mark(), values)


def read_header(lines: Lines) -> CsvFormat:
    """Read the header of a CSV file, and return the file's format. The delimiter is the one in a first line
    such as `sep=;`, or else the most frequent one of DELIMITERS in the header. Raises Invalid."""
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
    """Return the cells of the next record; the list is empty for an empty line and at the end of the file.
    Raises ParseError. After an error of quotes, reading continues at the record's second line, because the
    lines after an open quote may be valid."""
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
            raise ParseError(number, "holds a NUL character; remove it")
    return cells


def _lines_of_record(line: bytes, lines: Lines) -> Iterator[str]:
    """Yield the lines of a record, of which csv reads the next one as long as a quote is open. Bytes that are
    not UTF-8 become lone surrogates. Raises ParseError for a record whose quote is not closed."""
    size = 0
    while line and (size := size + len(line)) <= MAX_RECORD_BYTES:
        yield line.decode(errors="surrogateescape")
        line = b"" if lines.mark().offset < lines.unclosed else lines.next()
    if size:
        raise ParseError(None, _NOT_CLOSED)
