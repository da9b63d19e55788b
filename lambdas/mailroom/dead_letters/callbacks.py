"""What the ledger says of callbacks: why one that is dead was not taken."""

from typing import TYPE_CHECKING, Any

from mailroom.aws import clients
from mailroom.aws.dynamo import plain, string
from mailroom.message.message import Key

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient


class CallbackResults:
    """Reads them from the ledger's items: a callback that died says nothing about its message, so the item is
    not written."""

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        self._client = client
        self._table = table

    @classmethod
    def of(cls, table: str) -> "CallbackResults":
        """The results in a ledger, by the process's own client."""
        return cls(clients.dynamodb(), table)

    def find(self, key: Key) -> dict[str, Any]:
        """Its message's item, with nothing but `callbacks`; {}: there are none."""
        where = {"id": string(key.id), "event_type": string(key.event_type)}
        reply = self._client.get_item(TableName=self._table, Key=where, ProjectionExpression="callbacks")
        return plain(reply.get("Item", {}))
