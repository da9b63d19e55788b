"""Failures as CSV, for a spreadsheet or another program."""

import csv
import io
import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

from mailroom_ops.shared.printable import printable

COLUMNS = ("to", "status", "reason", "message", "at", "event_type", "id")
"""Columns of the file: fields of `Failure`."""
_FORMULA = re.compile(r"[\s=+\-@]")
"""First character of a text that a spreadsheet may run as a formula: OWASP ASVS 1.2.10."""


def csv_lines(failures: Iterable[Struct]) -> Iterator[str]:
    """Yield the header and a line for each failure, with the line ends of RFC 4180."""
    yield _line(COLUMNS)
    for failure in failures:
        yield _line(_cell(str(getattr(failure, name))) for name in COLUMNS)


def _line(cells: Iterable[str]) -> str:
    line = io.StringIO()
    csv.writer(line, quoting=csv.QUOTE_ALL).writerow(cells)
    return line.getvalue()


def uncelled(cell: str) -> str:
    """Return the text of which `_cell` made a cell."""
    return cell[1:] if cell[:1] == "'" and _FORMULA.match(cell[1:]) else cell


def _cell(text: str) -> str:
    """Return a cell's text, which may come from a provider or a producer. A text that may be a formula gets
    an apostrophe before it, so that spreadsheets show it as text."""
    safe = printable(text)
    return f"'{safe}" if _FORMULA.match(safe) else safe
