"""Batched reads of tables whose items are messages: the mailbox and the ledger."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from mailroom.aws.dynamo_batches import batch_get
from mailroom.ledger.items import where
from mailroom.message.message import Key

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient


def items_of(
    client: "DynamoDBClient", table: str, keys: Iterable[Key], *, consistent: bool = True
) -> dict[Key, dict[str, Any]]:
    """Return the items of messages by key, in plain Python. A message without an item is left out. Raises
    UnprocessedKeys."""
    wheres = [where(key) for key in dict.fromkeys(keys)]
    items = batch_get(client, {table: wheres}, consistent=(table,) if consistent else ())[table]
    return {Key(item["id"], item["event_type"]): item for item in items}
