"""The lines that were refused, as they stand in the file, each with its number and the reason: to be mended
there and imported alone."""

import os
import re
from pathlib import Path
from typing import Any

import msgspec

from mailroom.campaigns.files.formats import Entry
from ops.imports.entries import LINE, REASON, Entries
from ops.imports.options import Options
from ops.imports.source import Source
from ops.screen import Refused

_JSON = re.compile(rb'\s*\{\s*"mailroom_line":\s*(\d{1,18}),\s*"mailroom_reason":\s*"(?:[^"\\]|\\.)*"\s*,?')
_HEAD = 64 * 1024
"""Bytes of a line that are looked at for what this file put there itself."""


class Rejected:
    """Such a file beside the source. It is made with its first line, and grows by whole ones."""

    def __init__(self, source: Source, options: Options, entries: Entries) -> None:
        self._source = source
        self._csv = options.format == "csv"
        self._delimiter = options.delimiter.encode()
        self._entries = entries
        # What is refused once more keeps its first number.
        self._again = entries.header[:2] == [LINE, REASON]
        self._ours = _ours(self._delimiter)
        self.path = path_of(source.path, options)
        self._file: Any = None

    def begin(self, size: int) -> None:
        """Go on behind its first `size` bytes: what was written after them is written again."""
        if self.path.exists():
            os.truncate(self.path, min(size, self.path.stat().st_size))

    def add(self, entry: Entry, reason: str) -> None:
        """One line more."""
        if self._file is None:
            self._file = self._opened()
        if self._csv:
            self._add_cells(entry, reason)
        else:
            self._add_object(entry, reason)

    def settle(self) -> int:
        """See to it that all of it is on the disk; its size."""
        if self._file is None:
            return self.path.stat().st_size if self.path.exists() else 0
        self._file.flush()
        os.fsync(self._file.fileno())
        return int(self._file.tell())

    def close(self) -> None:
        """Let it go."""
        if self._file is not None:
            self._file.close()

    def _opened(self) -> Any:
        try:
            file = self.path.open("ab")
        except OSError as error:
            raise Refused(f"{self.path} cannot be written: {error.strerror}.") from None
        if self._csv and file.tell() == 0:
            header = b"".join(self._source.part(self._entries.top.offset, self._entries.start.offset))
            if not self._again:
                names = (LINE.encode(), REASON.encode(), header)
                header = self._delimiter.join(names)
            file.write(header if header.endswith(b"\n") else header + b"\n")
        return file

    def _add_cells(self, entry: Entry, reason: str) -> None:
        number, skip = b"%d" % entry.begin.line, 0
        if self._again:
            ours = self._ours.match(self._source.read(entry.begin.offset, _HEAD))
            if ours is not None:
                number, skip = ours[1] or number, ours.end()
        quoted = b'"' + reason.replace('"', '""').encode() + b'"'
        self._file.write(self._delimiter.join((number, quoted, b"")))
        self._copy(entry, skip)

    def _add_object(self, entry: Entry, reason: str) -> None:
        head = self._source.read(entry.begin.offset, min(_HEAD, entry.end.offset - entry.begin.offset))
        number, skip = entry.begin.line, len(head) - len(head.lstrip()) + 1
        if ours := _JSON.match(head):
            number, skip = int(ours[1]), ours.end()
        said = msgspec.json.encode({LINE: number, REASON: reason})
        if not head.lstrip().startswith(b"{"):
            text = head.decode(errors="replace").strip()
            said = msgspec.json.encode({LINE: number, REASON: reason, "mailroom_text": text})
            self._file.write(said + b"\n")
            return
        rest = head[skip:].lstrip()
        self._file.write(said[:-1] + (b"" if rest.startswith(b"}") else b","))
        self._copy(entry, skip)

    def _copy(self, entry: Entry, skip: int) -> None:
        last = b""
        for chunk in self._source.part(entry.begin.offset + skip, entry.end.offset):
            self._file.write(chunk)
            last = chunk[-1:]
        if last != b"\n":
            self._file.write(b"\n")


def path_of(source: Path, options: Options) -> Path:
    """Where the refused lines of a file go."""
    return source.with_name(f"{source.name}.mailroom-rejected.{options.format}")


def _ours(delimiter: bytes) -> re.Pattern[bytes]:
    """The two cells that this file puts before a line, as they are or as another program wrote them."""
    end = re.escape(delimiter)
    return re.compile(rb'"?(\d{0,18})"?' + end + rb'(?:"(?:[^"]|"")*"|[^"\r\n' + end + rb"]*)" + end)
