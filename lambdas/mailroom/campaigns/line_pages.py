"""Pages of a file of lines in S3. The cursor is a byte's offset, so that a page costs the same wherever it
lies, and the file's version, so that all pages are of one file."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from mailroom.campaigns.audience import Found, Page
from mailroom.campaigns.rows import Rows
from mailroom.campaigns.s3_lines import MAX_RECORD_BYTES, Lines, Mark, S3Object, TooLong

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

MAX_PAGE_BYTES = 8 * 1024 * 1024
"""Where a page ends before it is full: long lines must not fill the memory."""
TOO_LONG = f"is longer than {MAX_RECORD_BYTES // 1024} KiB; shorten it"


class LinePages(ABC):
    """An audience of lines; what one says, and what stands before the first, its kinds know."""

    def __init__(self, client: "S3Client", location: str, key: str, columns: tuple[str, ...]) -> None:
        self._client = client
        self._location = location
        self.key = key
        self.columns = columns

    def page(self, page: Page) -> Found:
        """One page. Raises Invalid where the file is missing, has changed since its first page, or is no
        such file; and botocore's errors."""
        cursor: dict[str, Any] = page.cursor or {"offset": 0, "line": 1, "etag": None}
        source = S3Object(self._client, self._location, cursor["etag"])
        lines = Lines(source, Mark(cursor["offset"], cursor["line"]))
        if page.cursor is None:
            lines.skip_mark_of_utf8()
            cursor |= self.before(lines)
        rows = Rows(self.key, self.columns)
        self._read(lines, rows, page.size, cursor)
        if lines.ended():
            return rows.found(None)
        end = lines.mark()
        return rows.found(cursor | {"offset": end.offset, "line": end.line, "etag": source.etag})

    def _read(self, lines: Lines, rows: Rows, size: int, cursor: dict[str, Any]) -> None:
        start = lines.mark()
        last = start.offset + MAX_PAGE_BYTES
        while len(rows) < size and start.offset < last and not lines.ended():
            try:
                self.entry(lines, start, rows, cursor)
            except TooLong:
                rows.refuse(f"line {start.line}", "", TOO_LONG)
            start = lines.mark()

    @abstractmethod
    def before(self, lines: Lines) -> dict[str, Any]:
        """What the cursor carries on from the lines before the first entry. Raises Invalid."""

    @abstractmethod
    def entry(self, lines: Lines, start: Mark, rows: Rows, cursor: dict[str, Any]) -> None:
        """Read the entry at the mark into the rows. Raises TooLong."""
