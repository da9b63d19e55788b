"""Writes the mailbox as producers do: a conditional put an item, so that what has an id keeps it."""

import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from botocore.exceptions import BotoCoreError, ClientError

from mailroom.aws.attribute_values import Value, image_of, plain, same
from mailroom.clock import Clock
from mailroom.errors import Invalid
from mailroom.mailbox.oversize import NOTHING, Oversize, due

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

State = Literal["put", "existed", "refused", "failed"]


@dataclass(frozen=True)
class Written:
    """What became of one put.

    existed: `found` is the item that stands there, in plain Python, and `same` says whether it is what was
    to be put. refused: DynamoDB cannot hold it; `field` is the attribute at fault and `error` the whole
    sentence. failed: AWS was out of reach or throttled, `error` says how; putting it again is safe.
    """

    state: State
    found: dict[str, Any] | None = None
    error: str = ""
    field: str = ""
    same: bool = False

    @property
    def problem(self) -> str:
        """The sentence without its field."""
        return self.error.removeprefix(f"{self.field}: ")


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

    def put(self, item: Mapping[str, Any], *, if_new: bool = True) -> Written:
        """Put one item, by default only where its id and event_type are new."""
        try:
            image = image_of(item)
            light = image if self._oversize is None else self._oversize.lightened(image)
            return self._put({**light}, if_new)
        except Invalid as fault:
            return Written("refused", None, str(fault), fault.field)
        except (ClientError, BotoCoreError) as error:
            return Written("failed", None, _said(error))

    def put_all(self, items: Iterable[Mapping[str, Any]], workers: int = 1) -> list[Written]:
        """Put many, `workers` at a time; what became of each, in their order."""
        if workers == 1:
            return [self.put(each) for each in items]
        with ThreadPoolExecutor(workers, thread_name_prefix="put") as pool:
            return list(pool.map(self.put, items))

    def _put(self, image: dict[str, Value], if_new: bool) -> Written:
        left_out = self._settle_ttl(image)
        condition: dict[str, Any] = {}
        if if_new:
            condition = {
                "ConditionExpression": "attribute_not_exists(id)",
                "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            }
        try:
            self._client.put_item(TableName=self._table, Item=image, **condition)
        except ClientError as error:
            return _refused(error, image, left_out)
        return Written("put")

    def _settle_ttl(self, image: dict[str, Value]) -> frozenset[str]:
        """Give it a ttl where the mailbox wants one and the item says none. Returns what does not count where
        it is compared with an item of its key: a ttl that it does not say itself."""
        if image.get("ttl", NOTHING) != NOTHING:
            return frozenset()
        if self._ttl is not None:
            image["ttl"] = {"N": str(int(max(self._clock(), due(image)) + self._ttl))}
        return frozenset(("ttl",))


def _refused(error: ClientError, image: dict[str, Value], left_out: frozenset[str]) -> Written:
    code = error.response["Error"]["Code"]
    if code == "ConditionalCheckFailedException":
        answer: Mapping[str, Any] = error.response  # the item is missing from its own description
        found: Mapping[str, Value] = answer.get("Item", {})
        equal = same(_without(image, left_out), _without(found, left_out))
        return Written("existed", plain(found), same=equal)
    if code == "ValidationException":
        fault = _explained(error.response["Error"].get("Message", ""))
        return Written("refused", None, str(fault), fault.field)
    raise error


def _without(image: Mapping[str, Value], names: frozenset[str]) -> dict[str, Value]:
    return {name: value for name, value in image.items() if name not in names}


def _explained(message: str) -> Invalid:
    if "Item size" in message:
        return Invalid("item", "is over 400 KB; put its content into the payload bucket")
    return Invalid("item", f"DynamoDB refuses it: {message:.300}")


def _said(error: ClientError | BotoCoreError) -> str:
    """What went wrong, without the request: botocore's own sentences may quote it."""
    if isinstance(error, ClientError):
        return f"{error.operation_name}: {error.response['Error']['Code']}"
    return type(error).__name__
