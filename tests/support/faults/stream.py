"""A table that records its changes in the form of its stream."""

from typing import Any

from botocore.exceptions import EndpointConnectionError

from tests.support.dynamodb import InMemoryDynamoDB


class Recording:
    """A DynamoDB client that records each item before and after an update.

    While `down` is set, updates fail as in an outage.
    """

    def __init__(self, client: InMemoryDynamoDB) -> None:
        self._client = client
        self.records: list[dict[str, Any]] = []
        self.down = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def update_item(self, **arguments: Any) -> Any:
        if self.down:
            raise EndpointConnectionError(endpoint_url="https://dynamodb")
        old = self._client.image(arguments["TableName"], arguments["Key"])
        reply = self._client.update_item(**arguments)
        new = self._client.image(arguments["TableName"], arguments["Key"])
        if new != old:
            images = {"NewImage": new} if old is None else {"OldImage": old, "NewImage": new}
            self.records.append(
                {
                    "eventName": "INSERT" if old is None else "MODIFY",
                    "dynamodb": {"SequenceNumber": str(1000 + len(self.records)), **images},
                }
            )
        return reply
