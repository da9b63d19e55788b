"""Writes the mailbox as producers do: a conditional put an item, so that what has an id keeps it.

The content of an item that is larger than DynamoDB takes goes into the payload bucket, and `payload_ref`
names it. The object is named by its content, so that the same item, sent again, is the same item.
"""

import hashlib
import json
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from mailroom.aws.dynamo import Value, image_of, plain, same, size_of
from mailroom.clock import Clock, epoch
from mailroom.content.payloads import MAX_PAYLOAD_BYTES, MAX_PAYLOAD_VALUES, OVERSIZE, values_in
from mailroom.errors import Invalid

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_dynamodb.type_defs import TransactWriteItemTypeDef
    from types_boto3_s3 import S3Client

MAX_ITEM_BYTES = 390 * 1024
"""DynamoDB takes 400 KB; its own count of numbers is not known exactly."""
MAX_QUEUED_BYTES = 1024 * 1024 - 4096
"""What an item may be as JSON: the body of a queue message, with room for its attributes."""
STAYS = frozenset(
    (
        *("id", "event_type", "send_at", "expires_at", "lane", "topic", "callback_url", "ttl", "attempt"),
        *("window", "time_zone", "template", "template_version", "locale"),
        *("to", "email", "cc", "bcc", "platform", "url"),
    )
)
"""Who an item is for, and when and how it goes: what is acted on before anybody reads a payload."""
DAY = 86400
NEEDED_AFTER = (14 + 1) * DAY
"""Seconds for which content, or an item that is read back, is needed after its message was due: the 14 days
that a message may lie in its queue and the dead-letter queue together, and one more, in which it is worked
on."""
RESTORED = "restored_id"
"""The attribute of an item that was lost and put back. It has the item's id, so that a copy which a producer
puts under another id is not taken for a restored item. Dispatch does not queue a restored item: the message
may have been sent, even if the ledger has forgotten it."""
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
        values = values_in(body)
        if values > MAX_PAYLOAD_VALUES:
            raise Invalid(
                "item",
                f"has {values} values of content, by their commas and brackets; "
                f"use at most {MAX_PAYLOAD_VALUES}",
            )
        stays = _part(image, staying=True)
        if _too_large(stays):
            raise Invalid("item", "is over 400 KB without its content; shorten whom it is for")
        key = f"{OVERSIZE}/{hashlib.sha256(body).hexdigest()}.json"
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


def original(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return the item as its producer put it: without the mark of a restored item. Whoever queues the message
    of a restored item knows that it was not sent."""
    return {name: value for name, value in item.items() if name != RESTORED}


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


T = TypeVar("T")
R = TypeVar("R")
PutState = Literal["accepted", "existed", "conflict", "refused", "failed"]


@dataclass(frozen=True)
class PutResult:
    """What became of one put.

    accepted: the item is in the mailbox now. existed: the very same was there. conflict: its id and
    event_type stand for another message, which stays. refused: DynamoDB cannot hold the item. failed: AWS was
    out of reach or throttled; putting the item again is safe. `error` is the whole sentence, and `field` the
    attribute at fault.
    """

    state: PutState
    error: str = ""
    field: str = ""
    repeated: bool = False
    """Whether the SDK has repeated the call: an item that existed may then be that of its first try."""

    @property
    def problem(self) -> str:
        """The sentence without its field."""
        return self.error.removeprefix(f"{self.field}: ")


def in_order(do: Callable[[T], R], items: Iterable[T], workers: int) -> Iterator[R]:
    """What `do` returns for each item, in their order; `workers` at a time, and never all items in memory."""
    if workers == 1:
        yield from map(do, items)
        return
    rest = iter(items)
    with ThreadPoolExecutor(workers, thread_name_prefix="mailroom") as pool:
        under_way = deque(pool.submit(do, each) for each in islice(rest, workers * 4))
        while under_way:
            yield under_way.popleft().result()
            under_way.extend(pool.submit(do, each) for each in islice(rest, 1))


_IF_NEW: dict[str, Any] = {
    "ConditionExpression": "attribute_not_exists(id)",
    "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
}
"""What has an id keeps it. DynamoDB sends the item along that stands in the way."""


class MailboxWriter:
    """Puts items into one table. `ttl`: for how long, in seconds, an item stays that does not say so itself,
    counted from its send_at; None: for ever. `oversize` takes what is too large for an item; None: that is
    refused."""

    def __init__(
        self,
        client: "DynamoDBClient",
        table: str,
        ttl: float | None = None,
        *,
        oversize: Oversize | None = None,
        clock: Clock = time.time,
    ) -> None:
        self._client = client
        self._table = table
        self._ttl = ttl or None
        self._oversize = oversize
        self._clock = clock

    def put(self, item: Mapping[str, Any], *, if_new: bool = True) -> PutResult:
        """Put one item, by default only where its id and event_type are new."""
        try:
            return self._put(self._image(item), if_new)
        except Invalid as fault:
            return _at_fault("refused", fault)
        except (ClientError, BotoCoreError) as error:
            return PutResult("failed", said(error))

    def entry(self, item: Mapping[str, Any]) -> "TransactWriteItemTypeDef":
        """The put as an entry of a `TransactWriteItems`: it cancels the transaction where the item's id and
        event_type are used. Raises Invalid for what can never be put, and botocore's errors where large
        content cannot be kept."""
        image = self._image(item)
        self._settle_ttl(image)
        put: Any = {"TableName": self._table, "Item": image, **_IF_NEW}
        return {"Put": put}

    def has(self, id_: str, event_type: str) -> bool:
        """Whether the mailbox has an item of this key."""
        key = {"id": {"S": id_}, "event_type": {"S": event_type}}
        briefly: Any = {"ConsistentRead": True, "ProjectionExpression": "id"}
        return "Item" in self._client.get_item(TableName=self._table, Key=key, **briefly)

    def put_all(self, items: Iterable[Mapping[str, Any]], workers: int = 1) -> list[PutResult]:
        """Put many, `workers` at a time; what became of each, in their order."""
        return list(in_order(self.put, items, workers))

    def _image(self, item: Mapping[str, Any]) -> dict[str, Value]:
        """Encode an item for DynamoDB, and keep large content outside of it. Raises Invalid for an item that
        can never be put or never be sent, and botocore's errors if the content cannot be kept."""
        image = image_of(item)
        if RESTORED in image:
            raise Invalid(RESTORED, "is the system's own: such an item is never sent; leave it out")
        return {**(image if self._oversize is None else self._oversize.lightened(image))}

    def _put(self, image: dict[str, Value], if_new: bool) -> PutResult:
        left_out = self._settle_ttl(image)
        condition = _IF_NEW if if_new else {}
        try:
            self._client.put_item(TableName=self._table, Item=image, **condition)
        except ClientError as error:
            return _refused(error, image, left_out)
        return PutResult("accepted")

    def _settle_ttl(self, image: dict[str, Value]) -> frozenset[str]:
        """Give it a ttl where the mailbox wants one and the item says none. Returns what does not count where
        it is compared with an item of its key: the mark of a restored item, and a ttl that it does not say
        itself."""
        if image.get("ttl", NOTHING) != NOTHING:
            return frozenset((RESTORED,))
        if self._ttl is not None:
            image["ttl"] = {"N": str(int(max(self._clock(), due(image)) + self._ttl))}
        return frozenset((RESTORED, "ttl"))


def _refused(error: ClientError, image: dict[str, Value], left_out: frozenset[str]) -> PutResult:
    code = error.response["Error"]["Code"]
    if code == "ConditionalCheckFailedException":
        answer: Mapping[str, Any] = error.response  # the item is missing from its own description
        found: Mapping[str, Value] = answer.get("Item", {})
        if same(_without(image, left_out), _without(found, left_out)):
            retries = answer["ResponseMetadata"].get("RetryAttempts", 0)
            return PutResult("existed", repeated=retries > 0)
        return _at_fault("conflict", Invalid("id", "is used for another message; use a new one"))
    if code == "ValidationException":
        return _at_fault("refused", _explained(error.response["Error"].get("Message", "")))
    raise error


def _at_fault(state: PutState, fault: Invalid) -> PutResult:
    return PutResult(state, str(fault), fault.field)


def _without(image: Mapping[str, Value], names: frozenset[str]) -> dict[str, Value]:
    return {name: value for name, value in image.items() if name not in names}


def _explained(message: str) -> Invalid:
    if "Item size" in message:
        return Invalid("item", "is over 400 KB; put its content into the payload bucket")
    return Invalid("item", f"DynamoDB refuses it: {message:.300}")


def said(error: ClientError | BotoCoreError) -> str:
    """What went wrong, without the request: botocore's own sentences may quote it."""
    if isinstance(error, ClientError):
        return f"{error.operation_name}: {error.response['Error']['Code']}"
    return type(error).__name__
