"""What an import keeps beside its file: how far it is, and the lines that were refused."""

import os
import re
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from mailroom.campaigns.file_formats import FileEntry
from ops.files import write_whole
from ops.imports.items import LINE, REASON, Options
from ops.imports.source import FileEntries, Source
from ops.screen import Refused

_JSON = re.compile(rb'\s*\{\s*"mailroom_line":\s*(\d{1,18}),\s*"mailroom_reason":\s*"(?:[^"\\]|\\.)*"\s*,?')
_HEAD = 64 * 1024
"""Bytes of a line that are looked at for what the file of refused lines has put there."""
_ANEW = "--restart begins anew, and puts no id twice."
_NUMBERED = (
    "and its ids are made of the lines' numbers: begun anew, a line that has moved would be put twice, or "
    "not at all. Put the file back as it was and let its import end; then import new lines as a file of "
    "their own. Or take out the lines that were put already, and say --restart and another --id-prefix: "
    "then each line that is left is a new message."
)


class LineCounts(Struct, kw_only=True):
    """Lines, by what became of them. put: they are in the mailbox now. existed: the very same were there;
    among them may be those that this import put before it was cut off. conflict: the id is another
    message's. refused: the line is not as it must be. left_out: it does not have what was asked for. failed:
    AWS did not take it, and the import ended; it is put when the import goes on."""

    put: int = 0
    existed: int = 0
    conflict: int = 0
    refused: int = 0
    left_out: int = 0
    failed: int = 0

    @property
    def lines(self) -> int:
        """All that were seen."""
        return self.put + self.existed + self.conflict + self.refused + self.left_out + self.failed


class ImportProgress(Struct, kw_only=True):
    """How far the import of one file is, into one stage of one account (`bucket` names all three). Every
    entry before `offset` is in the mailbox, or among the first `rejected_bytes` bytes of refused lines."""

    bucket: str
    sha256: str
    options: Options
    offset: int
    line: int
    counts: LineCounts
    rejected_bytes: int = 0


class ProgressFile:
    """The progress in a small file, by which a later process goes on. Without this file it begins anew, which
    is as safe for a source that has not changed, and takes longer. The file is replaced as a whole, so a
    crash leaves the old one or the new one."""

    def __init__(self, source: Path) -> None:
        self._source = source
        self.path = source.with_name(f"{source.name}.mailroom-progress")

    def write(self, progress: ImportProgress) -> None:
        """Keep it. Raises Refused where that cannot be done."""
        write_whole(self.path, msgspec.json.format(msgspec.json.encode(progress)) + b"\n")

    def found(self, asked: ImportProgress, *, numbered: bool, restart: bool) -> ImportProgress | None:
        """How far an earlier process came with the import that is asked for; None: begin. `numbered`: ids are
        made of the lines' numbers, so a line that has moved gets another id. Raises Refused where the import
        cannot go on, or must not `restart`."""
        if restart and not numbered:
            return None
        known = self._read()
        if known is None:
            return None
        one, other = known.options, asked.options
        changed = known.sha256 != asked.sha256
        if restart:
            same_ids = (one.id_prefix, one.id_column) == (other.id_prefix, other.id_column)
            if changed and same_ids and known.bucket == asked.bucket:
                raise self.changed(numbered=True)
            return None
        names = [name for name in one.__struct_fields__ if getattr(one, name) != getattr(other, name)]
        names += ["stage or account"] if known.bucket != asked.bucket else []
        if changed and not names:
            raise self.changed(numbered=numbered)
        if names:
            raise Refused(
                f"{self._source} was being imported with another {' and '.join(names)}; use the same as "
                f"before, or {_ANEW}"
            )
        return known

    def changed(self, *, numbered: bool) -> Refused:
        """What to do with a file that is not the one that was begun."""
        begun = f"{self._source} has changed since its import was begun"
        return Refused(f"{begun}, {_NUMBERED}" if numbered else f"{begun}; {_ANEW}")

    def _read(self) -> ImportProgress | None:
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=ImportProgress)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            raise Refused(
                f"{self.path} cannot be read as an import's progress. If {self._source.name} has not changed "
                f"since, delete {self.path.name}, and begin anew."
            ) from None


class RejectedLines:
    """The refused lines as they stand in the source, each with its number and the reason, to be mended there
    and imported by themselves. The file is made with its first line, and grows by whole ones."""

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
        self._file: Any = None

    def begin(self, size: int) -> None:
        """Go on behind its first `size` bytes: what was written after them is written again."""
        if self.path.exists():
            os.truncate(self.path, min(size, self.path.stat().st_size))

    def add(self, entry: FileEntry, reason: str) -> None:
        if self._file is None:
            self._file = self._opened()
        if self._csv:
            self._add_cells(entry, reason)
        else:
            self._add_object(entry, reason)

    def flush(self) -> int:
        """Bring all of it to the disk; its size."""
        if self._file is None:
            return self.path.stat().st_size if self.path.exists() else 0
        self._file.flush()
        os.fsync(self._file.fileno())
        return int(self._file.tell())

    def close(self) -> None:
        """Close the file, if there is one."""
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
