"""Audience that is a file in S3, read page by page.

The cursor contains the byte offset of the next page, so that each page costs the same, and the file's ETag,
so that all pages are from the same version of the file.
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
"""Maximum number of bytes of a page, so that long lines do not use up the memory."""


class FileAudience(Struct, frozen=True):
    """Audience of the entries of a file of any size. A fault contains the line number, counted from 1, and
    the column."""

    definition: File
    client: "S3Client"
    optional: tuple[str, ...] = ()
    """Columns that a CSV file must have, but whose cells may be empty."""

    def page(self, page: Page) -> Found:
        """Return a page. Raises Invalid if the location is invalid, or if the file is missing, has changed
        since the first page, or has an invalid format. Raises botocore's errors."""
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
        """Return the format of the file. The header of a CSV file is read once, and stored in the cursor for
        later pages."""
        audience = self.definition
        if audience.location.endswith(".jsonl"):
            return JsonLinesFormat()
        if "header" in cursor:
            return CsvFormat(cursor["delimiter"], cursor["header"])
        csv = read_header(lines)
        for column in audience.map:
            if column not in csv.header:
                listed = ", ".join(csv.header)
                raise Invalid("audience.map", f"the audience has no column {column!r}; it has: {listed:.300}")
        names = [audience.map.get(name, name) for name in csv.header]
        check_columns(names, (audience.key, *audience.columns, *self.optional))
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
            place = f"line {entry.begin.line}"
            if entry.values is not None:
                rows.add(place, self._renamed(entry.values))
            elif entry.problem:
                rows.refuse(place, entry.column, entry.problem)
            end = entry.end
        return rows


class S3Object:
    """Object in S3. Every request requires the ETag of the first response, so a changed object raises
    Invalid."""

    def __init__(self, client: "S3Client", location: str, etag: str | None) -> None:
        self._client = client
        place = urlsplit(location, allow_fragments=False)
        if place.scheme != "s3" or not place.netloc or len(place.path) < 2:
            raise Invalid(LOCATION, f"{location!r:.200} is not a location in S3; use s3://bucket/key")
        self._location = location
        self._place = {"Bucket": place.netloc, "Key": location.removeprefix(f"s3://{place.netloc}/")}
        self.etag = etag
        self.size: int | None = None
        """Size of the object in bytes; None before the first read."""

    def read(self, offset: int) -> bytes:
        """Return up to CHUNK_BYTES bytes from the offset on, or b"" at the end of the object. Raises Invalid
        if the object is missing or has changed, and botocore's errors."""
        if self.size is not None and offset >= self.size:
            return b""
        request: dict[str, Any] = {**self._place, "Range": f"bytes={offset}-{offset + CHUNK_BYTES - 1}"}
        if self.etag is not None:
            request["IfMatch"] = self.etag
        try:
            response = self._client.get_object(**request)
        except ClientError as error:
            if _status(error) == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                self.size = offset
                return b""
            raise self._explained(error) from None
        self.etag = response["ETag"]
        self.size = int(response["ContentRange"].rpartition("/")[2])
        with response["Body"] as body:
            return body.read()

    def _explained(self, error: ClientError) -> Exception:
        status = _status(error)
        if status == HTTPStatus.PRECONDITION_FAILED:
            changed = "has changed since the run began; start the run again: no person gets two messages"
            return Invalid(LOCATION, f"{self._location} {changed}")
        if status == HTTPStatus.NOT_FOUND:
            return Invalid(LOCATION, f"{self._location} does not exist; put the file there")
        if status == HTTPStatus.FORBIDDEN:
            # S3 refuses a request for a missing object as well, if the caller may not list the bucket.
            words = (
                "does not exist, or collect may not read its bucket or KMS key; put the file there, or allow "
                "collect to read it"
            )
            return Invalid(LOCATION, f"{self._location} {words}")
        return error


def _status(error: ClientError) -> int:
    return int(error.response["ResponseMetadata"]["HTTPStatusCode"])
