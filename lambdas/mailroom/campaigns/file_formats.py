"""How the entries of a file are written: CSV (RFC 4180) and JSON Lines. One entry is read at a time, from any
byte on, with no more of the file in memory than an entry and a chunk.

Campaigns read files in S3, and `mailroom import` on an operator's machine. Python's own CSV reader does not
fit: it works on text, knows neither its byte offset nor the cell that is not text, and reads on to the file's
end after a quote that is not closed.
"""

import math
import re
from collections.abc import Sequence
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from mailroom.errors import MAX_DEPTH, NUMBERS, Invalid, too_deep

CHUNK_BYTES = 256 * 1024
"""Asked for at once: more than a page of ordinary lines, so that a page is mostly one request."""
MAX_RECORD_BYTES = 256 * 1024
"""Bytes of one entry, with all its lines."""
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
    """Reads a file's lines forwards, and back to where the last mark was set."""

    def __init__(self, source: Readable, start: Position) -> None:
        self._source = source
        self._bytes = b""
        self._base = start.offset
        """The offset of the first of the bytes."""
        self._at = 0
        self._kept = 0
        """Where in the bytes the last mark is: from there on they are kept."""
        self._line = start.line
        self._vain: tuple[float, str] = (0, "")

    @property
    def vain(self) -> str | None:
        """What is wrong with a record whose quote is open here, where an earlier look has told already; None:
        nobody knows. Else a file of lines that each open a quote would be read once for each of them."""
        limit, problem = self._vain
        return problem if self._base + self._at < limit else None

    def learn(self, problem: str, less: float = 0) -> None:
        """A quote that is open at the begin of a line up to here, `less` so many bytes, has this problem."""
        self._vain = (self._base + self._at - less, problem)

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
        self._kept = self._at
        return Position(self._base + self._at, self._line)

    def back(self, mark: Position) -> None:
        """Go back to a place at the last mark or behind it."""
        if mark.offset < self._base:  # a line that was too long was let go, and what stood before it
            self._bytes, self._base, self._kept = b"", mark.offset, 0
        self._at = mark.offset - self._base
        self._line = mark.line

    def next(self) -> bytes:
        """The next line with its line break; empty: there is none. Raises ParseError, behind the line, if the
        line is longer than an entry may be."""
        end = self._bytes.find(b"\n", self._at) + 1 or self._fetched_end()
        line = self._bytes[self._at : end]
        self._at = end
        self._line += 1
        return line

    def ended(self) -> bool:
        """Whether the file has no further byte. False while its size is not known."""
        return self._source.size is not None and self._base + self._at >= self._source.size

    def _fetched_end(self) -> int:
        """Where in the bytes the present line ends, with as many fetched as it takes."""
        looked = len(self._bytes) - self._at
        while self._fetch():
            end = self._bytes.find(b"\n", self._at + looked) + 1
            if end:
                break
            looked = len(self._bytes) - self._at
            if looked > MAX_RECORD_BYTES:
                self._skip()
                raise ParseError(None, TOO_LONG)
        else:
            end = len(self._bytes)
        return end

    def _fetch(self) -> bool:
        """Read more bytes; those before the mark are dropped."""
        more = self._source.read(self._base + len(self._bytes))
        self._bytes = self._bytes[self._kept :] + more
        self._base += self._kept
        self._at -= self._kept
        self._kept = 0
        return bool(more)

    def _skip(self) -> None:
        """Skip the rest of a line that is too long, and keep nothing of it."""
        begin, end = self._base + self._at, 0
        while not end:
            self._at = self._kept = len(self._bytes)
            if self._base + self._at - begin > MAX_LINE_BYTES:
                size = f"over {MAX_LINE_BYTES // 2**20} MiB"
                raise Invalid(LOCATION, f"line {self._line} has {size}; put a line break behind each entry")
            if not self._fetch():
                break
            end = self._bytes.find(b"\n") + 1
        self._at = end or self._at
        self._line += 1


QUOTE = b'"'
_QUOTED = re.compile(rb'[^"]*+(?:""[^"]*+)*+')
"""The inside of a quoted cell, as far as it stands in a line."""
TOO_LONG = f"is longer than {MAX_RECORD_BYTES // 1024} KiB; shorten it"
_SUSPECT = frozenset("=@\t\r+-")
"""What a spreadsheet takes for the begin of a formula (OWASP, CSV Injection)."""
_SIGNED = re.compile(r"[+-](?:\d[\d.,]*|[.,]\d+)(?:[eE][+-]?\d{1,3})?%?")
_PHONE = re.compile(r"\+\(?\d[\d ()./-]{0,40}")
_NUL = "\0"
_NOT_CLOSED = "has a quote that is not closed; close it, or double it"
_NOT_UTF8 = "is not UTF-8; save the file as UTF-8"
_NO_NUMBER = "holds a number that no message can carry; use up to 38 digits, 1E-130 to 1E+125"
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
        if too_deep(line, values):
            raise ParseError(None, f"has over {MAX_DEPTH} levels of lists and objects; use fewer")
        return values


class CsvFormat:
    """Cells by the columns of the header. Raises Invalid for a bad delimiter."""

    def __init__(self, delimiter: str, header: Sequence[str]) -> None:
        self.header = header
        self._delimiter = _checked(delimiter)

    def values(self, lines: Lines) -> dict[str, Any] | None:
        """The cells of the next record; None: the line is empty. Raises ParseError."""
        cells = _record(lines, self._delimiter)
        if not cells:
            return None
        if len(cells) != len(self.header):
            number = f"{len(cells)} cell" if len(cells) == 1 else f"{len(cells)} cells"
            problem = (
                f"has {number} where the header has {len(self.header)}; quote cells that hold the delimiter"
            )
            raise ParseError(None, problem)
        return dict(zip(self.header, _texts(cells), strict=True))


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


def read_header(lines: Lines, delimiter: str) -> list[str]:
    """The columns that a CSV file's first line names. Raises Invalid."""
    try:
        cells = _record(lines, _checked(delimiter))
        header = [cell.decode().strip() for cell in cells]
        problem = "" if header else "is empty; it must name the columns"
    except UnicodeDecodeError:
        problem = _NOT_UTF8
    except ParseError as fault:
        problem = fault.problem
    if problem:
        raise Invalid("audience.columns", f"line 1, the header, {problem}")
    return header


def _checked(delimiter: str) -> bytes:
    found = delimiter.encode()
    if len(found) != 1 or found in QUOTE + b"\r\n":
        raise Invalid("audience.delimiter", "is not one ASCII character; use , or ; or a tab")
    return found


def _texts(cells: list[bytes]) -> list[str]:
    """The cells as text. Raises ParseError for the first that is not text, or that a program might run."""
    texts = []
    for at, cell in enumerate(cells):
        try:
            text = cell.decode()
        except UnicodeDecodeError:
            raise ParseError(at, _NOT_UTF8) from None
        if text and (text[0] in _SUSPECT or _NUL in text):
            _check(at, text)
        texts.append(text)
    return texts


def _check(at: int, text: str) -> None:
    if _NUL in text:
        raise ParseError(at, "holds a NUL character; take it out")
    if not (_SIGNED.fullmatch(text) or _PHONE.fullmatch(text)):
        raise ParseError(at, f"begins with {text[0]!r}, as a formula does; take that out")


def _record(lines: Lines, delimiter: bytes) -> list[bytes]:
    """The next record; [] for an empty line, and at the end.

    It may be several lines long, where a quoted cell holds line breaks. Raises ParseError behind
    the first line: what comes after a quote that was not closed may be fine.
    """
    start = lines.mark()
    line = lines.next()
    if QUOTE not in line:
        bare = _without_break(line)
        return bare.split(delimiter) if bare else []
    try:
        return _read_on(lines, line, delimiter)
    except ParseError:
        lines.back(Position(start.offset + len(line), start.line + 1))
        raise


def _read_on(lines: Lines, line: bytes, delimiter: bytes) -> list[bytes]:
    """The cells of the record that begins with this line. A quote that stays open for too long is followed
    for as long again: what is learned so spares the lines on the way a look of their own. Raises
    ParseError."""
    cells: list[bytes] = []
    open_, size, late = None, 0, None
    try:
        while line:
            size += len(line)
            open_ = _read_line(line, delimiter, cells, open_)
            if open_ is None:
                break
            _check_known(lines, cells)
            if late is None and size > MAX_RECORD_BYTES:
                late = len(cells)
            line = _more(lines, size)
    except ParseError as fault:
        if lines.vain is None:
            lines.learn(fault.problem)
        raise
    if line and late is None:
        return cells
    if not line and lines.ended():
        lines.learn(_NOT_CLOSED, -math.inf)
    else:
        # Another record may be whole that begins later and has the same end, or ends a little later.
        lines.learn(_NOT_CLOSED, MAX_RECORD_BYTES + len(line) if size > MAX_RECORD_BYTES else 0)
    raise ParseError(len(cells) if late is None else late, _NOT_CLOSED)


def _check_known(lines: Lines, cells: list[bytes]) -> None:
    if (problem := lines.vain) is not None:
        raise ParseError(len(cells), problem)


def _more(lines: Lines, size: int) -> bytes:
    """The next line; empty: there is none that may belong to a record of that size so far."""
    try:
        return lines.next() if size <= 2 * MAX_RECORD_BYTES else b""
    except ParseError:
        return b""


def _read_line(
    line: bytes, delimiter: bytes, cells: list[bytes], open_: bytearray | None
) -> bytearray | None:
    """Add a line's cells to those of its record. `open_` is what the lines before have of a quoted cell that
    is not closed; returned is what such a cell has now. None: there is none. Raises ParseError."""
    at = 0
    while True:
        if open_ is None and not line.startswith(QUOTE, at):
            end = line.find(delimiter, at)
            if end < 0:
                cells.append(_without_break(line[at:]))
                return None
            cells.append(line[at:end])
            at = end + 1
            continue
        if open_ is None:
            open_, at = bytearray(), at + 1
        inside = _QUOTED.match(line, at)
        assert inside is not None  # it may be empty
        open_ += inside[0]
        close = inside.end()
        if close == len(line):
            return open_
        cells.append(bytes(open_).replace(QUOTE * 2, QUOTE))
        open_, at = None, close + 2
        if not line.startswith(delimiter, close + 1):
            if _without_break(line[close + 1 : close + 4]):
                raise ParseError(
                    len(cells) - 1, "has text behind its closing quote; double the quotes within"
                )
            return None


def _without_break(line: bytes) -> bytes:
    if line.endswith(b"\n"):
        return line[:-2] if line.endswith(b"\r\n") else line[:-1]
    return line
