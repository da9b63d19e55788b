"""The mailbox, read back: for messages that waited for their time."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from mailroom.aws.batch_get import batch_get
from mailroom.aws.dynamo import string
from mailroom.message.message import Key

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient


class Mailbox:
    """Reads items; producers alone write them."""

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        self._client = client
        self._table = table

    def items(self, keys: Iterable[Key]) -> dict[Key, dict[str, Any]]:
        """The items that still exist. Raises Unread where DynamoDB throttles."""
        asked = [{"id": string(key.id), "event_type": string(key.event_type)} for key in dict.fromkeys(keys)]
        found = batch_get(self._client, {self._table: asked}, consistent=True)[self._table]
        return {Key(item["id"], item["event_type"]): item for item in found}
