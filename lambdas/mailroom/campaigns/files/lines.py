"""The lines of a file, from any byte on, with no more of it in memory than a line and a chunk."""

from typing import Protocol

from msgspec import Struct

from mailroom.errors import Invalid

CHUNK_BYTES = 256 * 1024
"""Asked for at once: more than a page of ordinary lines, so that a page is mostly one request."""
MAX_RECORD_BYTES = 256 * 1024
"""Of one entry, with all its lines."""
MAX_LINE_BYTES = 64 * 1024 * 1024
"""Beyond that a file has no lines, and the search for the next one would outlast the function."""

LOCATION = "audience.location"
"""The setting at fault where a file cannot be read at all."""
_BOM = b"\xef\xbb\xbf"
_NO_TEXT = (
    (b"\x1f\x8b", "compressed (gzip)", "put it there as plain text"),
    (b"PK\x03\x04", "compressed (zip, or a spreadsheet)", "put it there as plain text"),
    (b"\xff\xfe", "in UTF-16", "save it as UTF-8"),
    (b"\xfe\xff", "in UTF-16", "save it as UTF-8"),
)


class TooLong(Exception):
    """A line is longer than an entry may be; what follows it is the next one's."""


class Position(Struct, frozen=True):
    """A place in a file: a byte's offset, and the number of the line that begins there, from 1."""

    offset: int
    line: int


class Readable(Protocol):
    """Bytes with lines in them: an object in S3, or a file on an operator's machine."""

    @property
    def size(self) -> int | None:
        """Its bytes; None: that is known after the first read."""
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
        """The next line with its line break; empty: there is none. Raises TooLong, behind the line."""
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
                raise TooLong
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
