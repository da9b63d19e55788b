"""Contents of messages that wait. They have a separate table, because ledger items change more often, and a
write of a large item costs more.

If a sender finds that a message has to wait, the content of the message is stored here, because its mailbox
item may be deleted meanwhile. Only the function `release` reads the content, when the message goes to its
queue. If `dispatch` lets a message wait for its `send_at`, `release` reads the mailbox item again instead.
"""

import zlib
from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

from mailroom.aws.dynamo_batches import batch_delete, batch_get, batch_put
from mailroom.aws.dynamo_values import Sets, Value, number, string
from mailroom.ledger.items import MessageKey
from mailroom.message.message import decode

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

SPARE_SECONDS = 30 * 86_400
"""Seconds after the end of a wait at which DynamoDB deletes a content that a crashed function has not
deleted. So `release` may be broken for a month before contents are lost."""


_MOST_BYTES = 380_000
"""Maximum number of bytes of a compressed body: DynamoDB allows 400 KB for an item."""


def fits(body: bytes) -> bool:
    """Return whether the body of a queue message is small enough to be stored, so that the message can
    wait."""
    return len(body) <= _MOST_BYTES or len(zlib.compress(body)) <= _MOST_BYTES


class Held(NamedTuple):
    """Key of the content of one wait."""

    key: MessageKey
    version: str


class Contents(Struct, frozen=True):
    """Table with the contents of messages that wait, by message and wait."""

    client: "DynamoDBClient"
    table: str

    def put(self, contents: Sequence[tuple[Held, str, float]]) -> None:
        """Write the bodies of queue messages, compressed, each with the time in epoch seconds at which its
        wait ends. Raises UnprocessedKeys and the client's errors."""
        items: list[Sets] = [
            {
                **_key(name),
                "body": {"B": zlib.compress(body.encode())},
                "ttl": number(ends + SPARE_SECONDS),
            }
            for name, body, ends in contents
        ]
        batch_put(self.client, self.table, items)

    def get(self, names: Iterable[Held]) -> dict[str, str]:
        """Return the bodies that still exist, by the version of the wait. Raises UnprocessedKeys."""
        keys = [_key(name) for name in names]
        items = batch_get(self.client, {self.table: keys}, consistent=(self.table,))[self.table]
        return {item["version"]: zlib.decompress(b64decode(item["body"])).decode() for item in items}

    def delete(self, names: Iterable[Held]) -> None:
        """Delete contents that are not needed any more. Raises UnprocessedKeys."""
        batch_delete(self.client, self.table, [_key(name) for name in names])

    def erase(self, key: MessageKey) -> int:
        """Delete all contents of a message, and return their number."""
        query: Any = {
            "TableName": self.table,
            "KeyConditionExpression": "message = :message",
            "ExpressionAttributeValues": {":message": string(_message(key))},
            "ProjectionExpression": "message, version",
            "ConsistentRead": True,
        }
        pages = self.client.get_paginator("query").paginate(**query)
        keys: Any = [item for page in pages for item in page["Items"]]
        batch_delete(self.client, self.table, keys)
        return len(keys)


def item_in(image: Mapping[str, Value]) -> Any:
    """Return the mailbox item in a content, in plain Python. `image` is the content in DynamoDB's form."""
    return decode(zlib.decompress(image["body"]["B"]))


def _key(name: Held) -> Sets:
    return {"message": string(_message(name.key)), "version": string(name.version)}


def _message(key: MessageKey) -> str:
    return f"{key.event_type}#{key.id}"
