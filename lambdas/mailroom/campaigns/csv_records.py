"""One CSV record at a time (RFC 4180), as the bytes of its cells.

Python's own reader works on text, says neither at which byte it stands nor which cell was no text, and reads
on to the file's end behind a quote that nobody closed.
"""

from mailroom.campaigns.s3_lines import MAX_RECORD_BYTES, Lines, Mark, TooLong

QUOTE = b'"'


class Broken(Exception):
    """A record that cannot be read: in which `cell`, counted from 0, and why."""

    def __init__(self, cell: int, problem: str) -> None:
        super().__init__(problem)
        self.cell = cell
        self.problem = problem


def record(lines: Lines, start: Mark, delimiter: bytes) -> list[bytes]:
    """The record that begins at the mark; [] for an empty line, and at the end.

    It may be several lines long, where a quoted cell holds line breaks. Raises Broken, behind the first of
    them: what comes after a quote that was not closed may be well; and TooLong.
    """
    line = lines.next()
    if QUOTE not in line:
        bare = _without_break(line)
        return bare.split(delimiter) if bare else []
    quoted = _Quoted(line, delimiter)
    try:
        while not quoted.read():
            quoted.text += _more(lines, quoted)
    except Broken:
        lines.back(Mark(start.offset + len(line), start.line + 1))
        raise
    return quoted.cells


def _more(lines: Lines, quoted: "_Quoted") -> bytes:
    try:
        more = lines.next() if len(quoted.text) <= MAX_RECORD_BYTES else b""
    except TooLong:
        more = b""
    if not more:
        raise Broken(len(quoted.cells), "has a quote that is not closed; close it, or double it")
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
        """Whether the record is whole. Raises Broken."""
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
        """The cell that this quote closes; whether it is the last. Raises Broken."""
        self.cells.append(bytes(self.text[self._at + 1 : close]).replace(QUOTE * 2, QUOTE))
        self._open, self._at = False, close + 2
        if self.text.startswith(self._delimiter, close + 1):
            return False
        if _without_break(bytes(self.text[close + 1 : close + 4])):
            raise Broken(len(self.cells) - 1, "has text behind its closing quote; double the quotes within")
        return True


def _without_break(line: bytes) -> bytes:
    if line.endswith(b"\n"):
        return line[:-2] if line.endswith(b"\r\n") else line[:-1]
    return line
