"""Items larger than DynamoDB takes: their content goes into the payload bucket, and `payload_ref` names it.

The object is named by its content, so that the same item, sent again, is the same item.
"""

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from mailroom.aws.attribute_values import Value, plain, size_of
from mailroom.clock import Clock, epoch
from mailroom.errors import Invalid

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

MAX_ITEM_BYTES = 390 * 1024
"""DynamoDB takes 400 KB; its own count of numbers is not known exactly."""
MAX_QUEUED_BYTES = 1024 * 1024 - 4096
"""What an item may be as JSON: the body of a queue message, with room for its attributes."""
MAX_PAYLOAD_BYTES = 10 * 1024 * 1024
"""What a sender reads of an object."""
MAX_PAYLOAD_VALUES = 150_000
"""What a sender's memory holds of one: texts, numbers, lists and maps together."""
STAYS = frozenset(
    (
        *("id", "event_type", "send_at", "expires_at", "lane", "topic", "callback_url", "ttl", "attempt"),
        *("to", "email", "cc", "bcc", "platform", "url"),
    )
)
"""Who an item is for, and when and how it goes: what is acted on before anybody reads a payload."""
DAY = 86400
NEEDED_AFTER = (14 + 1) * DAY
"""Seconds for which content, or an item that is read back, is needed after its message was due: the 14 days
that a message may lie in its queue and the dead-letter queue together, and one more, in which it is worked
on."""
PREFIX = "oversize/"
NOTHING: Value = {"NULL": True}
_LONGEST_ESCAPE = 6
"""Bytes of JSON that one byte of UTF-8 may become: `\\u0001`."""


class Oversize:
    """Keeps the content of large items. `bucket` names the payload bucket; it is asked when one is met.
    `keep_seconds` is for how long that keeps an object; None: for ever, or nobody knows."""

    def __init__(
        self,
        client: "S3Client",
        bucket: Callable[[], str],
        keep_seconds: float | None = None,
        *,
        clock: Clock = time.time,
    ) -> None:
        self._client = client
        self._bucket = bucket
        self._keep_seconds = keep_seconds
        self._clock = clock

    def lightened(self, image: Mapping[str, Value]) -> Mapping[str, Value]:
        """The item itself, in DynamoDB's form, where table and queue take it; else one that names its
        content, which then lies in the bucket. Raises Invalid for what cannot be divided so, and botocore's
        errors."""
        if not _too_large(image):
            return image
        _check(image)
        self._check_time(image)
        body = encoded(plain(_part(image, staying=False))).encode()
        if len(body) > MAX_PAYLOAD_BYTES:
            raise Invalid(
                "item", f"has {len(body)} bytes of content as JSON; use at most {MAX_PAYLOAD_BYTES}"
            )
        values = sum(map(body.count, (b"[", b"{", b",")))
        if values > MAX_PAYLOAD_VALUES:
            raise Invalid(
                "item",
                f"has {values} values of content, by their commas and brackets; "
                f"use at most {MAX_PAYLOAD_VALUES}",
            )
        stays = _part(image, staying=True)
        if _too_large(stays):
            raise Invalid("item", "is over 400 KB without its content; shorten whom it is for")
        key = f"{PREFIX}{hashlib.sha256(body).hexdigest()}.json"
        bucket = self._bucket()
        self._client.put_object(Bucket=bucket, Key=key, Body=body, ContentType="application/json")
        return {**stays, "payload_ref": {"S": f"s3://{bucket}/{key}"}}

    def _check_time(self, image: Mapping[str, Value]) -> None:
        """Raise Invalid where the content would be gone before its message has come to an end."""
        if self._keep_seconds is None:
            return
        longest = max(0.0, self._keep_seconds - NEEDED_AFTER)
        if due(image) > self._clock() + longest:
            raise Invalid(
                "send_at",
                f"lies beyond the {int(longest // DAY)} days that large content is kept; "
                "put the item nearer to its time, or make it smaller",
            )


def due(image: Mapping[str, Value]) -> float:
    """When an item wants to be sent, in epoch seconds; 0: at once, or at no time that can be read."""
    try:
        return epoch(image["send_at"]["S"])
    except (KeyError, ValueError, OverflowError):
        return 0.0


def _part(image: Mapping[str, Value], staying: bool) -> dict[str, Value]:
    """What stays in the item, or what goes. A payload_ref that is null says nothing and is neither."""
    return {
        name: value for name, value in image.items() if (name in STAYS) is staying and name != "payload_ref"
    }


def _check(image: Mapping[str, Value]) -> None:
    if image.get("event_type") == {"S": "fax"}:
        raise Invalid("item", "is over 400 KB; name the PDF by pdf_url or payload_ref and leave the rest out")
    if image.get("payload_ref", NOTHING) != NOTHING:
        raise Invalid("item", "is over 400 KB beside its payload_ref; put more of it into that object")


def _too_large(image: Mapping[str, Value]) -> bool:
    size = size_of(image)
    if size > MAX_ITEM_BYTES:
        return True
    if size * _LONGEST_ESCAPE <= MAX_QUEUED_BYTES:  # nearly always: it need not be written out to tell
        return False
    return len(encoded(plain(image)).encode()) > MAX_QUEUED_BYTES


def encoded(value: Any) -> str:
    """JSON that is the same for the same content; numbers keep all their digits, as json's own do not."""
    match value:
        case Decimal():
            return str(value)
        case list():
            return f"[{','.join(map(encoded, value))}]"
        case dict():
            return f"{{{','.join(f'{_quoted(name)}:{encoded(value[name])}' for name in sorted(value))}}}"
    return _quoted(value)


def _quoted(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
