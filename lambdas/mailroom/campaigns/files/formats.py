"""How the entries of a file are written: CSV (RFC 4180) and JSON Lines. One entry is read at a time.

Python's own CSV reader does not fit: it works on text, knows neither its byte offset nor the cell that is not
text, and reads on to the file's end after a quote that is not closed.
"""

import re
from collections.abc import Sequence
from typing import Any, Protocol

import msgspec
from boto3.dynamodb.types import DYNAMODB_CONTEXT
from msgspec import Struct

from mailroom.campaigns.files.lines import MAX_RECORD_BYTES, Lines, Position, TooLong
from mailroom.errors import Invalid

QUOTE = b'"'
TOO_LONG = f"is longer than {MAX_RECORD_BYTES // 1024} KiB; shorten it"
_SUSPECT = frozenset("=@\t\r+-")
"""What a spreadsheet takes for the begin of a formula (OWASP, CSV Injection)."""
_SIGNED = re.compile(r"[+-](?:\d[\d.,]*|[.,]\d+)(?:[eE][+-]?\d{1,3})?%?")
_PHONE = re.compile(r"\+\(?\d[\d ()./-]{0,40}")
_NUL = "\0"
_NOT_UTF8 = "is not UTF-8; save the file as UTF-8"
_NO_NUMBER = "holds a number that no message can carry; use up to 38 digits, 1E-130 to 1E+125"
_decoder = msgspec.json.Decoder(float_hook=DYNAMODB_CONTEXT.create_decimal)
"""Numbers keep all their digits; a float keeps some seventeen. A number that no item can hold raises
ArithmeticError here: later, it would fail the messages of others as well."""


class Unreadable(Exception):
    """An entry that cannot be read: in which `cell`, counted from 0 (None: all of it), and why."""

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


class Format(Protocol):
    """How one kind of file is written. `header` are the columns that its first line names."""

    @property
    def header(self) -> Sequence[str]: ...

    def values(self, lines: Lines, start: Position) -> dict[str, Any] | None:
        """The entry at the mark; None: the line is empty. Raises Unreadable and TooLong."""


def read_entry(lines: Lines, format_: Format) -> FileEntry:
    """The next entry. After a faulty entry, the one behind it can be read."""
    begin = lines.mark()
    try:
        values = format_.values(lines, begin)
    except TooLong:
        return FileEntry(begin, lines.mark(), problem=TOO_LONG)
    except Unreadable as fault:
        header, cell = format_.header, fault.cell
        column = header[cell] if cell is not None and cell < len(header) else ""
        return FileEntry(begin, lines.mark(), None, column, fault.problem)
    return FileEntry(begin, lines.mark(), values)


class JsonLinesFormat:
    """A JSON object a line."""

    header = ()

    def values(self, lines: Lines, start: Position) -> dict[str, Any] | None:  # noqa: ARG002 - a line is an entry
        """The object of the next line."""
        line = lines.next()
        if not line.strip():
            return None
        try:
            values = _decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            # msgspec's words name a place, and never what stands there.
            words = str(error) if isinstance(error, msgspec.DecodeError) else type(error).__name__
            raise Unreadable(None, f"is not JSON in UTF-8 ({words}); correct it") from None
        except ArithmeticError:
            raise Unreadable(None, _NO_NUMBER) from None
        if not isinstance(values, dict):
            raise Unreadable(None, "is not a JSON object; use one a line")
        return values


class CsvFormat:
    """Cells by the columns of the header. Raises Invalid for a bad delimiter."""

    def __init__(self, delimiter: str, header: Sequence[str]) -> None:
        self.header = header
        self._delimiter = _checked(delimiter)

    def values(self, lines: Lines, start: Position) -> dict[str, Any] | None:
        """The cells of the record at the mark."""
        cells = _record(lines, start, self._delimiter)
        if not cells:
            return None
        if len(cells) != len(self.header):
            number = f"{len(cells)} cell" if len(cells) == 1 else f"{len(cells)} cells"
            problem = (
                f"has {number} where the header has {len(self.header)}; quote cells that hold the delimiter"
            )
            raise Unreadable(None, problem)
        return dict(zip(self.header, _texts(cells), strict=True))


def read_header(lines: Lines, delimiter: str) -> list[str]:
    """The columns that a CSV file's first line names. Raises Invalid."""
    try:
        cells = _record(lines, lines.mark(), _checked(delimiter))
        header = [cell.decode().strip() for cell in cells]
        problem = "" if header else "is empty; it must name the columns"
    except UnicodeDecodeError:
        problem = _NOT_UTF8
    except TooLong:
        problem = TOO_LONG
    except Unreadable as fault:
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
    """The cells as text. Raises Unreadable for the first that is not text, or that a program might run."""
    texts = []
    for at, cell in enumerate(cells):
        try:
            text = cell.decode()
        except UnicodeDecodeError:
            raise Unreadable(at, _NOT_UTF8) from None
        if text and (text[0] in _SUSPECT or _NUL in text):
            _check(at, text)
        texts.append(text)
    return texts


def _check(at: int, text: str) -> None:
    if _NUL in text:
        raise Unreadable(at, "holds a NUL character; take it out")
    if not (_SIGNED.fullmatch(text) or _PHONE.fullmatch(text)):
        raise Unreadable(at, f"begins with {text[0]!r}, as a formula does; take that out")


def _record(lines: Lines, start: Position, delimiter: bytes) -> list[bytes]:
    """The record that begins at the mark; [] for an empty line, and at the end.

    It may be several lines long, where a quoted cell holds line breaks. Raises TooLong, and Unreadable behind
    the first line: what comes after a quote that was not closed may be fine.
    """
    line = lines.next()
    if QUOTE not in line:
        bare = _without_break(line)
        return bare.split(delimiter) if bare else []
    quoted = _Quoted(line, delimiter)
    try:
        while not quoted.read():
            quoted.text += _more(lines, quoted)
    except Unreadable:
        lines.back(Position(start.offset + len(line), start.line + 1))
        raise
    return quoted.cells


def _more(lines: Lines, quoted: "_Quoted") -> bytes:
    try:
        more = lines.next() if len(quoted.text) <= MAX_RECORD_BYTES else b""
    except TooLong:
        more = b""
    if not more:
        raise Unreadable(len(quoted.cells), "has a quote that is not closed; close it, or double it")
    return more


class _Quoted:
    """A record with quotes in it. More text may come, line by line, while a quoted cell is open."""

    def __init__(self, line: bytes, delimiter: bytes) -> None:
        self.text = bytearray(line)
        self.cells: list[bytes] = []
        self._delimiter = delimiter
        self._at = 0
        self._open = False
        self._looked = 0

    def read(self) -> bool:
        """Whether the record is whole. Raises Unreadable."""
        while True:
            if not self._open and not self.text.startswith(QUOTE, self._at):
                whole = self._bare()
            else:
                close = self._close()
                if close < 0:
                    return False
                whole = self._behind(close)
            if whole:
                return True

    def _bare(self) -> bool:
        """A cell without quotes around it; whether it is the last."""
        end = self.text.find(self._delimiter, self._at)
        if end < 0:
            self.cells.append(_without_break(bytes(self.text[self._at :])))
            return True
        self.cells.append(bytes(self.text[self._at : end]))
        self._at = end + 1
        return False

    def _close(self) -> int:
        """Where the open cell's closing quote stands; -1: not in this text."""
        if not self._open:
            self._open, self._looked = True, self._at + 1
        while (found := self.text.find(QUOTE, self._looked)) >= 0:
            if not self.text.startswith(QUOTE, found + 1):
                return found
            self._looked = found + 2
        self._looked = len(self.text)
        return -1

    def _behind(self, close: int) -> bool:
        """The cell that this quote closes; whether it is the last. Raises Unreadable."""
        self.cells.append(bytes(self.text[self._at + 1 : close]).replace(QUOTE * 2, QUOTE))
        self._open, self._at = False, close + 2
        if self.text.startswith(self._delimiter, close + 1):
            return False
        if _without_break(bytes(self.text[close + 1 : close + 4])):
            raise Unreadable(
                len(self.cells) - 1, "has text behind its closing quote; double the quotes within"
            )
        return True


def _without_break(line: bytes) -> bytes:
    if line.endswith(b"\n"):
        return line[:-2] if line.endswith(b"\r\n") else line[:-1]
    return line
