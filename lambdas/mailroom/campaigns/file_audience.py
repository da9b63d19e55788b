"""An audience in a file of lines in S3, a page at a time.

The cursor is a byte's offset, so that a page costs the same wherever it lies, and the file's version, so that
all pages are of one file.
"""

from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from botocore.exceptions import ClientError
from msgspec import Struct

from mailroom.campaigns.audience import Found, Page, Rows, check_columns
from mailroom.campaigns.definition import File
from mailroom.campaigns.file_formats import (
    CHUNK_BYTES,
    LOCATION,
    NO_ENTRY,
    CsvFormat,
    Format,
    JsonLinesFormat,
    Lines,
    Position,
    read_entry,
    read_header,
)
from mailroom.errors import Invalid

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

MAX_PAGE_BYTES = 8 * 1024 * 1024
"""Where a page ends before it is full: long lines must not fill the memory."""


class FileAudience(Struct, frozen=True):
    """The entries of one file, of any size. A fault names the line, as an editor counts, and the column."""

    definition: File
    client: "S3Client"
    optional: tuple[str, ...] = ()
    """Columns that a CSV file must have, and whose cells may be empty."""

    def page(self, page: Page) -> Found:
        """One page. Raises Invalid where the file is missing, has changed since its first page, or is no
        such file; and botocore's errors."""
        cursor: dict[str, Any] = page.cursor or {"offset": 0, "line": 1, "etag": None}
        source = S3Object(self.client, self.definition.location, cursor["etag"])
        lines = Lines(source, Position(cursor["offset"], cursor["line"]))
        if page.cursor is None:
            lines.skip_mark_of_utf8()
        rows = self._read(lines, page.size, self._format(lines, cursor))
        if lines.ended():
            if page.cursor is None and source.size and not len(rows):
                rows.refuse("line 1", "", NO_ENTRY)
            return rows.found(None)
        end = lines.mark()
        return rows.found(cursor | {"offset": end.offset, "line": end.line, "etag": source.etag})

    def _format(self, lines: Lines, cursor: dict[str, Any]) -> Format:
        """How the file is written. The cursor carries what the first lines of a CSV file said from page to
        page."""
        asked = self.definition
        if asked.location.endswith(".jsonl"):
            return JsonLinesFormat()
        if "header" in cursor:
            return CsvFormat(cursor["delimiter"], cursor["header"])
        csv = read_header(lines)
        for column in asked.map:
            if column not in csv.header:
                known = ", ".join(csv.header)
                raise Invalid("audience.map", f"the audience has no column {column!r}; it has: {known:.300}")
        names = [asked.map.get(name, name) for name in csv.header]
        check_columns(names, (asked.key, *asked.columns, *self.optional))
        cursor |= {"delimiter": csv.delimiter, "header": csv.header}
        return csv

    def _renamed(self, values: dict[str, Any]) -> dict[str, Any]:
        names = self.definition.map
        return {names.get(name, name): value for name, value in values.items()} if names else values

    def _read(self, lines: Lines, size: int, format_: Format) -> Rows:
        rows = Rows(self.definition.key, self.definition.columns)
        end = lines.mark()
        last = end.offset + MAX_PAGE_BYTES
        while len(rows) < size and end.offset < last and not lines.ended():
            entry = read_entry(lines, format_)
            where = f"line {entry.begin.line}"
            if entry.values is not None:
                rows.add(where, self._renamed(entry.values))
            elif entry.problem:
                rows.refuse(where, entry.column, entry.problem)
            end = entry.end
        return rows


class S3Object:
    """One object, which must stay as it is while it is read: each request is for the version of the first."""

    def __init__(self, client: "S3Client", location: str, etag: str | None) -> None:
        self._client = client
        place = urlsplit(location, allow_fragments=False)
        if place.scheme != "s3" or not place.netloc or len(place.path) < 2:
            raise Invalid(LOCATION, f"{location!r:.200} is no place in S3; use s3://bucket/key")
        self._location = location
        self._place = {"Bucket": place.netloc, "Key": location.removeprefix(f"s3://{place.netloc}/")}
        self.etag = etag
        self.size: int | None = None
        """The object's size in bytes; None before the first were read."""

    def read(self, offset: int) -> bytes:
        """The bytes from the offset on, CHUNK_BYTES at most; none: that is its end. Raises Invalid where
        there is no such object or it has changed, and botocore's errors."""
        if self.size is not None and offset >= self.size:
            return b""
        asked: dict[str, Any] = {**self._place, "Range": f"bytes={offset}-{offset + CHUNK_BYTES - 1}"}
        if self.etag is not None:
            asked["IfMatch"] = self.etag
        try:
            reply = self._client.get_object(**asked)
        except ClientError as error:
            if _status(error) == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                self.size = offset
                return b""
            raise self._explained(error) from None
        self.etag = reply["ETag"]
        self.size = int(reply["ContentRange"].rpartition("/")[2])
        with reply["Body"] as body:
            return body.read()

    def _explained(self, error: ClientError) -> Exception:
        status = _status(error)
        if status == HTTPStatus.PRECONDITION_FAILED:
            changed = (
                "has changed since the run began; start the run again: who was sent to is not sent twice"
            )
            return Invalid(LOCATION, f"{self._location} {changed}")
        if status == HTTPStatus.NOT_FOUND:
            return Invalid(LOCATION, f"{self._location} does not exist; put the file there")
        if status == HTTPStatus.FORBIDDEN:
            # S3 answers so for a missing object as well, where the caller may not list the bucket.
            why = "is not there, or its bucket or key does not let collect read it; put it there, or let it"
            return Invalid(LOCATION, f"{self._location} {why}")
        return error


def _status(error: ClientError) -> int:
    return int(error.response["ResponseMetadata"]["HTTPStatusCode"])
