"""Sources of audiences for tests, and all their pages."""

import hashlib
import io
import json
from collections.abc import Iterator, Sequence
from typing import Any

from botocore.exceptions import ClientError
from botocore.response import StreamingBody
from msgspec import structs

from mailroom.campaigns.audience import Audience, Connections, Found, Page, Recipient
from mailroom.campaigns.definition import File
from mailroom.campaigns.file_audience import FileAudience

LOCATION, JSON_LINES = "s3://lists/people/all.csv", "s3://lists/people/all.jsonl"
RUN, TIME = "2026-11-18T13:00Z", "2026-11-18T13:00:00Z"


class Connected:
    """An audience each of whose pages may ask these databases."""

    def __init__(self, audience: Audience, databases: Connections) -> None:
        self._audience = audience
        self._databases = databases

    def page(self, page: Page) -> Found:
        return self._audience.page(structs.replace(page, databases=self._databases))


class Content:
    """The bytes of an object, as many as are asked for."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data)

    def read(self, begin: int, end: int) -> bytes:
        return self.data[begin:end]

    @property
    def etag(self) -> str:
        return f'"{hashlib.md5(self.read(0, 1000) + str(len(self)).encode()).hexdigest()}"'


class Bucket:
    """S3's GetObject for one object: ranges, and conditions on its version."""

    def __init__(self, content: Content | bytes) -> None:
        self.content = content if isinstance(content, Content) else Content(content)
        self.asked: list[dict[str, Any]] = []

    def get_object(self, **asked: Any) -> dict[str, Any]:
        self.asked.append(asked)
        assert f"s3://{asked['Bucket']}/{asked['Key']}" in (LOCATION, JSON_LINES)
        size = len(self.content)
        if asked.get("IfMatch", self.content.etag) != self.content.etag:
            raise s3_refusal("PreconditionFailed", 412)
        begin, end = (int(each) for each in asked["Range"].removeprefix("bytes=").split("-"))
        if begin >= size:
            raise s3_refusal("InvalidRange", 416)
        data = self.content.read(begin, min(end + 1, size))
        return {
            "ETag": self.content.etag,
            "ContentRange": f"bytes {begin}-{begin + len(data) - 1}/{size}",
            "Body": StreamingBody(io.BytesIO(data), len(data)),
        }


def s3_refusal(code: str, status: int) -> ClientError:
    answer: Any = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, "GetObject")


def csv(content: Content | bytes, key: str = "id", columns: Sequence[str] = (), **names: str) -> FileAudience:
    """An audience of a CSV file with this content; `names` are the columns of attributes."""
    definition = File(LOCATION, key, tuple(columns), {column: name for name, column in names.items()})
    return FileAudience(definition, Bucket(content))  # type: ignore[arg-type]


def jsonl(content: bytes, key: str = "id", columns: Sequence[str] = (), **names: str) -> FileAudience:
    """An audience of a JSON Lines file with this content; `names` are the columns of attributes."""
    definition = File(JSON_LINES, key, tuple(columns), {column: name for name, column in names.items()})
    return FileAudience(definition, Bucket(content))  # type: ignore[arg-type]


def cursor_page(cursor: Any = None, size: int = 1000) -> Page:
    return Page(cursor, size, RUN, TIME)


def audience_pages(audience: Audience, size: int = 1000) -> Iterator[Found]:
    """Yield all pages. Each cursor passes through a queue message."""
    found = audience.page(cursor_page(size=size))
    yield found
    while found.cursor is not None:
        found = audience.page(cursor_page(json.loads(json.dumps(found.cursor)), size))
        yield found


def recipients_of(audience: Audience, size: int = 1000) -> list[Recipient]:
    return [each for found in audience_pages(audience, size) for each in found.recipients]


def keys_of(audience: Audience, size: int = 1000) -> list[str]:
    return [each.key for each in recipients_of(audience, size)]


def faults(audience: Audience, size: int = 1000) -> list[str]:
    """Return the sentences about faults that an operator reads."""
    return [str(each) for found in audience_pages(audience, size) for each in found.faults]
