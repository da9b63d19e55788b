"""Reads DynamoDB's full export of a table to S3. The format:
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/S3DataExport.Output.html."""

import gzip
import io
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import md5
from typing import TYPE_CHECKING, Any, Literal

from msgspec import DecodeError, Struct
from msgspec.json import Decoder, decode

from mailroom.errors import quantity
from mailroom_ops.shared.refusals import Refused
from mailroom_ops.shared.tables import parts

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

TABLES = ("suppressions", "preferences")
"""Tables that the setting `deployment.second_copy` exports. Items of other tables may have binary attributes,
which `read_export` would have to decode from base64."""
_PAGE = 1_000
"""Number of items of a page."""
_OTHER = "Restore another export; items that were copied already do no harm."


class _Summary(Struct, rename="camel"):
    """Content of `manifest-summary.json`."""

    table_arn: str
    item_count: int
    output_format: Literal["DYNAMODB_JSON"]


class _DataFile(Struct, rename={"key": "dataFileS3Key", "md5": "md5Checksum", "items": "itemCount"}):
    """Line of `manifest-files.json`."""

    key: str
    md5: str
    items: int


Page = list[dict[str, Any]]


def read_export(s3: "S3Client", source: str, table: str) -> tuple[int, Iterator[Page]]:
    """Return the number of items in the export at `source`, such as s3://bucket/prefix/AWSDynamoDB/ID/, and
    its pages of items. Raises Refused if the export is incomplete or of another table. So does the iterator
    at a damaged file, before it yields items of that file."""
    read = partial(_read, s3, source.removesuffix("/"))
    try:
        summary = Decoder(_Summary).decode(read("manifest-summary.json"))
        files = Decoder(_DataFile).decode_lines(read("manifest-files.json"))
    except DecodeError as error:
        raise Refused(f"--from: {source} cannot be read: {error}.") from None
    if table not in TABLES or not summary.table_arn.endswith(f"-{table}"):
        raise Refused(f"--from: {source} is an export of {summary.table_arn}; the table has to be {table}.")
    items = sum(file.items for file in files)
    if items != summary.item_count:
        whole = quantity(summary.item_count, "item")
        raise Refused(f"--from: {source} lists {items:,} of {whole}. {_OTHER}")
    return items, (page for file in files if file.items for page in _pages(read, file))


def _read(s3: "S3Client", source: str, file: str) -> bytes:
    bucket, _, folder = source.removeprefix("s3://").partition("/")
    try:
        return s3.get_object(Bucket=bucket, Key=f"{folder}/{file}")["Body"].read()
    except (s3.exceptions.NoSuchKey, s3.exceptions.NoSuchBucket):
        raise Refused(
            f"--from: {source}/{file} does not exist: the export has failed, is not complete yet, or is in "
            "another folder."
        ) from None


def _pages(read: Callable[[str], bytes], file: _DataFile) -> Iterator[Page]:
    # The export may have been copied to another prefix or bucket, so only the end of the key is valid.
    name = f"data/{file.key.rpartition('/')[2]}"
    content = read(name)
    if b64encode(md5(content, usedforsecurity=False).digest()).decode() != file.md5:
        raise Refused(f"--from: {name} is damaged: its MD5 checksum is not {file.md5}. {_OTHER}")
    try:
        with gzip.open(io.BytesIO(content)) as lines:
            for page in parts(lines, _PAGE):
                yield [decode(line)["Item"] for line in page]
    except (OSError, EOFError, zlib.error, DecodeError, KeyError, TypeError) as error:
        raise Refused(f"--from: {name} is not in the format of an export: {error!r}. {_OTHER}") from None
