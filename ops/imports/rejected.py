"""The file of refused lines that an import leaves beside its source."""

import re
from typing import Any

import msgspec

from mailroom.campaigns.file_formats import FileEntry
from ops.imports.items import LINE, REASON, Options
from ops.imports.source import FileEntries, Source
from ops.screen import Refused

_JSON = re.compile(rb'\s*\{\s*"mailroom_line":\s*(\d{1,18}),\s*"mailroom_reason":\s*"(?:[^"\\]|\\.)*"\s*,?')
_HEAD = 64 * 1024
"""Bytes of a line that are looked at for what the file of refused lines has put there."""


class RejectedLines:
    """The refused lines as they stand in the source, each with its number and the reason, to be fixed there
    and imported by themselves. The file has another name until it is whole: an import that ends before will
    come by these lines again."""

    def __init__(self, source: Source, options: Options, entries: FileEntries) -> None:
        self._source = source
        self._csv = options.format == "csv"
        self._delimiter = options.delimiter.encode()
        self._entries = entries
        # What is refused once more keeps its first number.
        self._again = entries.header[:2] == [LINE, REASON]
        # The two cells that this file puts before a line, as they are or as another program wrote them.
        end = re.escape(self._delimiter)
        self._ours = re.compile(
            rb'"?(\d{0,18})"?' + end + rb'(?:"(?:[^"]|"")*"|[^"\r\n' + end + rb"]*)" + end
        )
        self.path = source.path.with_name(f"{source.path.name}.mailroom-rejected.{options.format}")
        self._part = self.path.with_name(f"{self.path.name}.part")
        self._file: Any = None
        if self.path.exists():
            raise Refused(
                f"{self.path} is there from an import before: import it when its lines are fixed, or delete "
                "it."
            )

    def add(self, entry: FileEntry, reason: str) -> None:
        """Copy a line that was refused."""
        if self._file is None:
            self._file = self._opened()
        if self._csv:
            self._add_cells(entry, reason)
        else:
            self._add_object(entry, reason)

    def close(self, *, whole: bool) -> None:
        """Give the file its name, if there is one and it is `whole`; else remove it."""
        if self._file is None:
            return
        self._file.close()
        if whole:
            self._part.replace(self.path)
        else:
            self._part.unlink()

    def _opened(self) -> Any:
        try:
            file = self._part.open("wb")
        except OSError as error:
            raise Refused(f"{self._part} cannot be written: {error.strerror}.") from None
        if self._csv:
            header = b"".join(self._source.part(self._entries.top.offset, self._entries.start.offset))
            if not self._again:
                names = (LINE.encode(), REASON.encode(), header)
                header = self._delimiter.join(names)
            file.write(header if header.endswith(b"\n") else header + b"\n")
        return file

    def _add_cells(self, entry: FileEntry, reason: str) -> None:
        number, skip = b"%d" % entry.begin.line, 0
        if self._again:
            ours = self._ours.match(self._source.read(entry.begin.offset, _HEAD))
            if ours is not None:
                number, skip = ours[1] or number, ours.end()
        quoted = b'"' + reason.replace('"', '""').encode() + b'"'
        self._file.write(self._delimiter.join((number, quoted, b"")))
        self._copy(entry, skip)

    def _add_object(self, entry: FileEntry, reason: str) -> None:
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

    def _copy(self, entry: FileEntry, skip: int) -> None:
        last = b""
        for chunk in self._source.part(entry.begin.offset + skip, entry.end.offset):
            self._file.write(chunk)
            last = chunk[-1:]
        if last != b"\n":
            self._file.write(b"\n")
