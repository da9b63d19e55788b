"""The imported file: its bytes, and its entries."""

import os
from collections.abc import Iterator
from pathlib import Path

from mailroom.campaigns.file_formats import (
    CHUNK_BYTES,
    NO_ENTRY,
    FileEntry,
    Format,
    JsonLinesFormat,
    Lines,
    Position,
    read_entry,
    read_header,
)
from mailroom.errors import Invalid
from mailroom_ops.campaigns.imported_items import Options
from mailroom_ops.shared.refusals import Refused


class Source:
    """File that is open for reading. It must not change until it is closed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = path.open("rb")
        except OSError as error:
            raise Refused(f"{path} cannot be read: {error.strerror}.") from None
        self.size = os.fstat(self._file.fileno()).st_size

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def read(self, offset: int, most: int = CHUNK_BYTES) -> bytes:
        """Return up to `most` bytes from an offset, but none after the end that the file had when it was
        opened. Raises Refused if the file is shorter now, because half a line would be read as a whole
        one."""
        length = max(0, min(most, self.size - offset))
        self._file.seek(offset)
        content = self._file.read(length)
        if len(content) < length:
            raise Refused(
                f"{self.path} has changed since this command began to read it: it is shorter now. Put it "
                "back as it was, and run the command again."
            )
        return content


class FileEntries:
    """Iterable over the entries of a file. `header` has the columns of a CSV file, and is empty otherwise."""

    def __init__(self, source: Source, options: Options) -> None:
        self._source = source
        self.header: list[str] = []
        self._format: Format = JsonLinesFormat()
        lines = Lines(source, Position(0, 1))
        try:
            lines.skip_mark_of_utf8()
            if options.format == "csv":
                self._format = read_header(lines)
                self.header = [*self._format.header]
        except Invalid as fault:
            raise Refused(f"{source.path}: {fault.problem}.") from None
        self._start = lines.mark()
        """Offset of the first entry."""

    def __iter__(self) -> Iterator[FileEntry]:
        """Yield the entries, without empty lines. For a file with empty lines only, yield one entry with
        the problem NO_ENTRY. Raises Refused if a part of the file cannot be parsed, such as the rest after a
        bad quote."""
        lines, empty = Lines(self._source, self._start), True
        while not lines.ended():
            try:
                entry = read_entry(lines, self._format)
            except Invalid as fault:
                raise Refused(f"{self._source.path}: {fault.problem}.") from None
            if entry.values is not None or entry.problem:
                empty = False
                yield entry
        if empty and self._source.size:
            yield FileEntry(Position(0, 1), lines.mark(), problem=NO_ENTRY)
