"""An audience in a CSV file: its header names the columns."""

import re
from typing import TYPE_CHECKING, Any

from mailroom.campaigns.csv_records import QUOTE, Broken, record
from mailroom.campaigns.definition import Csv
from mailroom.campaigns.line_pages import TOO_LONG, LinePages
from mailroom.campaigns.rows import Rows, check_columns
from mailroom.campaigns.s3_lines import Lines, Mark, TooLong
from mailroom.errors import Invalid

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

_SUSPECT = frozenset("=@\t\r+-")
"""What a spreadsheet takes for the begin of a formula (OWASP, CSV Injection)."""
_SIGNED = re.compile(r"[+-](?:\d[\d.,]*|[.,]\d+)(?:[eE][+-]?\d{1,3})?%?")
_PHONE = re.compile(r"\+\(?\d[\d ()./-]{0,40}")
_NUL = "\0"
_NOT_UTF8 = "is not UTF-8; save the file as UTF-8"
_NO_HEADER = {UnicodeDecodeError: _NOT_UTF8, TooLong: TOO_LONG}


class CsvAudience(LinePages):
    """The lines of one file, of any size. What is wrong with a line is said by its number, as an editor
    counts, and its column."""

    def __init__(self, definition: Csv, client: "S3Client") -> None:
        super().__init__(client, definition.location, definition.key, definition.columns)
        self._delimiter = definition.delimiter.encode()
        if len(self._delimiter) != 1 or self._delimiter in QUOTE + b"\r\n":
            raise Invalid("audience.delimiter", "is not one ASCII character; use , or ; or a tab")

    def before(self, lines: Lines) -> dict[str, Any]:
        """The header."""
        try:
            cells = record(lines, lines.mark(), self._delimiter)
            header = [cell.decode().strip() for cell in cells]
        except (Broken, TooLong, UnicodeDecodeError) as error:
            problem = _NO_HEADER.get(type(error), str(error))
            raise Invalid("audience.columns", f"line 1, the header, {problem}") from None
        if not header:
            raise Invalid("audience.columns", "line 1 is empty; it must name the columns")
        check_columns(header, self.key, self.columns)
        return {"header": header}

    def entry(self, lines: Lines, start: Mark, rows: Rows, cursor: dict[str, Any]) -> None:
        """One record; empty lines are none."""
        header: list[str] = cursor["header"]
        try:
            cells = record(lines, start, self._delimiter)
            if not cells:
                return
            if len(cells) != len(header):
                problem = f"has {_count(len(cells), 'cell')} where the header has {len(header)}; quote cells"
                rows.refuse(f"line {start.line}", "", f"{problem} that hold the delimiter")
                return
            texts = _texts(cells)
        except Broken as broken:
            column = header[broken.cell] if broken.cell < len(header) else ""
            rows.refuse(f"line {start.line}", column, broken.problem)
            return
        rows.add(f"line {start.line}", dict(zip(header, texts, strict=True)))


def _texts(cells: list[bytes]) -> list[str]:
    """The cells as text. Raises Broken for the first that is none, or that a program might run."""
    texts = []
    for at, cell in enumerate(cells):
        try:
            text = cell.decode()
        except UnicodeDecodeError:
            raise Broken(at, _NOT_UTF8) from None
        if text and (text[0] in _SUSPECT or _NUL in text):
            _check(at, text)
        texts.append(text)
    return texts


def _check(at: int, text: str) -> None:
    if _NUL in text:
        raise Broken(at, "holds a NUL character; take it out")
    if not (_SIGNED.fullmatch(text) or _PHONE.fullmatch(text)):
        raise Broken(at, f"begins with {text[0]!r}, as a formula does; take that out")


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
