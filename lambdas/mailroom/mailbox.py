"""The mailbox, read back: for messages that waited for their time."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from mailroom.dynamo import plain, string
from mailroom.message import Key

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

_MAX_KEYS = 100
"""BatchGetItem's own bound."""


class Mailbox:
    """Reads items; producers alone write them."""

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        self._client = client
        self._table = table

    def items(self, keys: Iterable[Key]) -> dict[Key, dict[str, Any]]:
        """The items that still exist. A reply holds 16 MB at most, so it may take several."""
        left: Any = [
            {"id": string(key.id), "event_type": string(key.event_type)} for key in dict.fromkeys(keys)
        ]
        found: dict[Key, dict[str, Any]] = {}
        while left:
            request = {"Keys": left[:_MAX_KEYS], "ConsistentRead": True}
            reply = self._client.batch_get_item(RequestItems={self._table: request})  # type: ignore[dict-item]
            for image in reply["Responses"].get(self._table, []):
                item = plain(image)
                found[Key(item["id"], item["event_type"])] = item
            if not reply["Responses"].get(self._table) and reply["UnprocessedKeys"]:
                raise RuntimeError("the mailbox is throttled: no key of a whole batch was read")
            unprocessed = reply["UnprocessedKeys"].get(self._table)
            left = [*(unprocessed["Keys"] if unprocessed else ()), *left[_MAX_KEYS:]]
        return found
