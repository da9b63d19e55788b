"""Writes items into the mailbox, by default on the condition that their key is new.

If an item is too large for DynamoDB, its content is put into the payload bucket, and the item gets a
`payload_ref` to this object. The object's key is a hash of the content, so that an item put again is
identical to the first one.
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

from mailroom.aws.dynamo_values import Value, image_of, plain, same, size_of
from mailroom.clock import Clock, epoch
from mailroom.content.payloads import MAX_PAYLOAD_BYTES, MAX_PAYLOAD_VALUES, OVERSIZE, values_in
from mailroom.errors import MAX_VARIABLES_BYTES, Invalid, check_variables
from mailroom.message import CAMPAIGN_START

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_dynamodb.type_defs import TransactWriteItemTypeDef
    from types_boto3_s3 import S3Client

MAX_ITEM_BYTES = 390 * 1024
"""Maximum number of bytes of an item. DynamoDB allows 400 KB; the margin is for numbers, whose size is only
documented approximately."""
MAX_QUEUED_BYTES = 1024 * 1024 - 4096
"""Maximum number of bytes of an item as JSON, the body of a queue message; the margin is for the message's
attributes."""
KEPT_ATTRIBUTES = frozenset(
    (
        *("id", "event_type", "send_at", "expires_at", "lane", "topic", "callback_url", "ttl", "attempt"),
        *("unless", "window", "time_zone", "template", "template_version", "locale", CAMPAIGN_START),
        *("to", "email", "cc", "bcc", "platform", "url"),
    )
)
"""Attributes that stay in a large item while its content is moved into the payload bucket. Functions need
them before they read the payload: the recipients, and when and how the message is sent."""
DAY = 86400
NEEDED_AFTER = (14 + 1) * DAY
"""Seconds for which an item and its content are needed after the message is due: 14 days, the longest stay in
queue and dead-letter queue together, and one day for the processing."""
RESTORED = "restored_id"
"""Attribute that marks an item which was restored from a backup. Its value is the item's id, so that a
producer's copy under another id does not count as restored. Dispatch does not queue a restored item, because
its message may have been sent, even if its ledger item has expired."""
_NULL: Value = {"NULL": True}
_LONGEST_ESCAPE = 6
"""Maximum number of bytes in JSON for one byte of UTF-8, as for `\\u0001`."""


@dataclass(frozen=True)
class Oversize:
    """Moves the content of large items into the payload bucket."""

    client: "S3Client"
    bucket: Callable[[], str]
    """Function that returns the name of the bucket, called at the first large item."""
    keep_seconds: float | None = None
    """Seconds for which the bucket keeps an object, or None if this time is unknown."""
    clock: Clock = time.time

    def lightened(self, image: Mapping[str, Value]) -> Mapping[str, Value]:
        """Return an item in DynamoDB's form that is small enough for table and queue: the item itself, or if
        it is too large, its KEPT_ATTRIBUTES and the `payload_ref` of its content, which is put into the
        bucket.

        Raises Invalid if the content cannot be moved, and botocore's errors.
        """
        if not _too_large(image):
            return image
        _check(image)
        self._check_time(image)
        # `_check` allows an existing payload_ref only if it is null, so it is not content.
        content = _without(image, KEPT_ATTRIBUTES | {"payload_ref"})
        body = encoded(plain(content)).encode()
        if len(body) > MAX_PAYLOAD_BYTES:
            raise Invalid(
                "item", f"has {len(body)} bytes of content as JSON; use at most {MAX_PAYLOAD_BYTES}"
            )
        values = values_in(body)
        if values > MAX_PAYLOAD_VALUES:
            raise Invalid(
                "item",
                f"has {values} values of content, counted by commas and brackets; "
                f"use at most {MAX_PAYLOAD_VALUES}",
            )
        attributes = {name: value for name, value in image.items() if name in KEPT_ATTRIBUTES}
        if _too_large(attributes):
            raise Invalid("item", "is over 400 KB without its content; use fewer recipients")
        key = f"{OVERSIZE}/{hashlib.sha256(body).hexdigest()}.json"
        bucket = self.bucket()
        self.client.put_object(Bucket=bucket, Key=key, Body=body, ContentType="application/json")
        return {**attributes, "payload_ref": {"S": f"s3://{bucket}/{key}"}}

    def _check_time(self, image: Mapping[str, Value]) -> None:
        """Raise Invalid if the bucket may delete the content before the message has an outcome."""
        if self.keep_seconds is None:
            return
        max_wait = max(0.0, self.keep_seconds - NEEDED_AFTER)
        if due(image) > self.clock() + max_wait:
            raise Invalid(
                "send_at",
                f"is over {int(max_wait // DAY)} days ahead, the longest wait of a large item; "
                "put the item later, or make it smaller",
            )


def original(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return the item without the mark of a restored item, as its producer put it. Call this only for a
    message that was certainly not sent."""
    return {name: value for name, value in item.items() if name != RESTORED}


def due(image: Mapping[str, Value]) -> float:
    """Return an item's send_at in epoch seconds, or 0 if it is missing or invalid."""
    try:
        return epoch(image["send_at"]["S"])
    except (KeyError, ValueError, OverflowError):
        return 0.0


def _check(image: Mapping[str, Value]) -> None:
    """Raise Invalid if the item's content cannot be moved."""
    if image.get("event_type") == {"S": "fax"}:
        raise Invalid("item", "is over 400 KB; put the PDF at pdf_url or payload_ref, and remove the rest")
    if image.get("payload_ref", _NULL) != _NULL:
        raise Invalid("item", "is over 400 KB without its payload; put more of it into the payload")


def _too_large(image: Mapping[str, Value]) -> bool:
    size = size_of(image)
    if size > MAX_ITEM_BYTES:
        return True
    if size * _LONGEST_ESCAPE <= MAX_QUEUED_BYTES:  # nearly all items end here, and need not be encoded
        return False
    return len(encoded(plain(image)).encode()) > MAX_QUEUED_BYTES


def encoded(value: Any) -> str:
    """Return a value as JSON in a canonical form, so that equal values have the same text. Unlike in the
    module `json`, numbers keep all their digits."""
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
    """Result of putting an item into the mailbox."""

    state: PutState
    """`accepted`: the item is in the mailbox now. `existed`: the mailbox had the identical item. `conflict`:
    another message has this id and event_type, and is unchanged. `refused`: the item is invalid. `failed`:
    AWS was out of reach or throttled; putting the item again is safe."""
    error: str = ""
    """Problem in a sentence, which begins with the name in `field` if there is one."""
    field: str = ""
    """Name of the invalid attribute."""
    repeated: bool = False
    """Whether the SDK has repeated the call. If so, and the item existed, the first try may have written the
    item."""

    @property
    def problem(self) -> str:
        """Error without the name of the field."""
        return self.error.removeprefix(f"{self.field}: ")


def in_order(function: Callable[[T], R], items: Iterable[T], workers: int) -> Iterator[R]:
    """Call the function for each item, in `workers` threads, and yield the results in the order of the items.
    Only a few items are read ahead, so that an iterable of any length is possible."""
    if workers == 1:
        yield from map(function, items)
        return
    iterator = iter(items)
    with ThreadPoolExecutor(workers, thread_name_prefix="mailroom") as pool:
        pending = deque(pool.submit(function, item) for item in islice(iterator, workers * 4))
        while pending:
            yield pending.popleft().result()
            pending.extend(pool.submit(function, item) for item in islice(iterator, 1))


_IF_NEW: dict[str, Any] = {
    "ConditionExpression": "attribute_not_exists(id)",
    "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
}
"""Parameters of a put that fails if the item's key is in use. DynamoDB's error then contains the existing
item."""


@dataclass(frozen=True)
class MailboxWriter:
    """Puts items into the table of a mailbox."""

    client: "DynamoDBClient"
    table: str
    ttl: float | None = None
    """Seconds until an item without a ttl expires, from the later of its put and its send_at; if None,
    such an item never expires."""
    oversize: Oversize | None = None
    """Object that moves large content into the payload bucket. By default, items that are too large for
    DynamoDB are refused."""
    clock: Clock = time.time
    composes: bool = False
    """Whether the items may have the attribute `campaign_start`, which only the function `compose` writes."""

    def put(self, item: Mapping[str, Any], *, if_new: bool = True) -> PutResult:
        """Put an item into the mailbox, by default only if its id and event_type are new."""
        try:
            return self._put(self._image(item), if_new)
        except Invalid as fault:
            return _at_fault("refused", fault)
        except (ClientError, BotoCoreError) as error:
            return PutResult("failed", error_summary(error))

    def replace(self, item: Mapping[str, Any]) -> tuple[PutResult, Mapping[str, Any] | None]:
        """Put the item of a campaign's later start. It replaces an item of an earlier start; the result's
        state is then `existed`. An item of the same start or of a later start stays.

        Returns the result, and the item that the mailbox has now if that item is not a new one and is of this
        start, so that `dispatch` does not queue it."""
        try:
            image = self._image(item)
            ignored = self._settle_ttl(image)
            start = image[CAMPAIGN_START]["M"]["start"]
            reply = self.client.put_item(
                TableName=self.table,
                Item=image,
                ConditionExpression=f"attribute_not_exists(id) OR {CAMPAIGN_START}.#start < :start",
                ExpressionAttributeNames={"#start": "start"},
                ExpressionAttributeValues={":start": start},
                ReturnValues="ALL_OLD",
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except Invalid as fault:
            return _at_fault("refused", fault), None
        except self.client.exceptions.ConditionalCheckFailedException as failed:
            response: Mapping[str, Any] = failed.response  # the type in types_boto3 lacks "Item"
            existing = response["Item"]
            is_own = existing.get(CAMPAIGN_START, {}).get("M", {}).get("start") == start
            return _not_put(failed, image, ignored), plain(existing) if is_own else None
        except (ClientError, BotoCoreError) as error:
            return PutResult("failed", error_summary(error)), None
        return (
            (PutResult("existed"), plain(image)) if "Attributes" in reply else (PutResult("accepted"), None)
        )

    def entry(self, item: Mapping[str, Any]) -> "TransactWriteItemTypeDef":
        """Return the put of an item as an entry of `TransactWriteItems`. The entry cancels the transaction if
        the item's id and event_type are in use. Raises Invalid, and botocore's errors if large content cannot
        be stored."""
        image = self._image(item)
        self._settle_ttl(image)
        put: Any = {"TableName": self.table, "Item": image, **_IF_NEW}
        return {"Put": put}

    def has(self, id_: str, event_type: str) -> bool:
        """Return whether the mailbox has an item with this key."""
        key = {"id": {"S": id_}, "event_type": {"S": event_type}}
        reply = self.client.get_item(
            TableName=self.table, Key=key, ConsistentRead=True, ProjectionExpression="id"
        )
        return "Item" in reply

    def put_all(self, items: Iterable[Mapping[str, Any]], workers: int = 1) -> list[PutResult]:
        """Put many items in `workers` threads, and return the results in the items' order."""
        return list(in_order(self.put, items, workers))

    def _image(self, item: Mapping[str, Any]) -> dict[str, Value]:
        """Encode an item for DynamoDB, and move large content into the payload bucket. Raises Invalid, and
        botocore's errors if the content cannot be stored."""
        image = image_of(item)
        if RESTORED in image:
            raise Invalid(RESTORED, "is reserved for Mailroom: an item with it is never sent; remove it")
        if CAMPAIGN_START in image and not self.composes:
            raise Invalid(CAMPAIGN_START, "is reserved for Mailroom; rename this attribute")
        if "template" in image and size_of(image) * _LONGEST_ESCAPE > MAX_VARIABLES_BYTES:
            check_variables("item", len(encoded(plain(image)).encode()))
        return {**(image if self.oversize is None else self.oversize.lightened(image))}

    def _put(self, image: dict[str, Value], if_new: bool) -> PutResult:
        ignored = self._settle_ttl(image)
        condition = _IF_NEW if if_new else {}
        try:
            self.client.put_item(TableName=self.table, Item=image, **condition)
        except ClientError as error:
            return _not_put(error, image, ignored)
        return PutResult("accepted")

    def _settle_ttl(self, image: dict[str, Value]) -> frozenset[str]:
        """Add a ttl if the item lacks one and the mailbox has a default. Return the attributes that a
        comparison with an existing item ignores: the mark of a restored item, the start of a campaign's run,
        and a ttl that the producer did not set."""
        if image.get("ttl", _NULL) != _NULL:
            return frozenset((RESTORED, CAMPAIGN_START))
        if self.ttl:
            image["ttl"] = {"N": str(int(max(self.clock(), due(image)) + self.ttl))}
        return frozenset((RESTORED, CAMPAIGN_START, "ttl"))


def _not_put(error: ClientError, image: dict[str, Value], ignored: frozenset[str]) -> PutResult:
    """Return the result of a put that DynamoDB refused permanently, and raise any other error again."""
    code = error.response["Error"]["Code"]
    if code == "ConditionalCheckFailedException":
        response: Mapping[str, Any] = error.response  # the type in types_boto3 lacks "Item"
        existing: Mapping[str, Value] = response.get("Item", {})
        if same(_without(image, ignored), _without(existing, ignored)):
            retries = response["ResponseMetadata"].get("RetryAttempts", 0)
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
    return Invalid("item", f"DynamoDB refuses the item: {message:.300}")


def error_summary(error: ClientError | BotoCoreError) -> str:
    """Return the operation and the code of an AWS error. botocore's own message may quote the request."""
    if isinstance(error, ClientError):
        return f"{error.operation_name}: {error.response['Error']['Code']}"
    return type(error).__name__
