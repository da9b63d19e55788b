"""A table whose changes are kept as its stream would tell of them, beside the real writes."""

import json
from typing import Any

from moto.dynamodb.models import dynamodb_backends
from moto.dynamodb.models.utilities import dynamo_json_dump

ACCOUNT = "123456789012"  # moto's own


class Recording:
    """A DynamoDB client that notes each item before and after an update."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.records: list[dict[str, Any]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def update_item(self, **arguments: Any) -> Any:
        old = self._image(arguments)
        reply = self._client.update_item(**arguments)
        new = self._image(arguments)
        if new != old:
            images = {"NewImage": new} if old is None else {"OldImage": old, "NewImage": new}
            self.records.append(
                {
                    "eventName": "INSERT" if old is None else "MODIFY",
                    "dynamodb": {"SequenceNumber": str(1000 + len(self.records)), **images},
                }
            )
        return reply

    def _image(self, arguments: dict[str, Any]) -> dict[str, Any] | None:
        """The item as it stands, past the API: two reads a write would be most of these tests' time."""
        table = dynamodb_backends[ACCOUNT][self._client.meta.region_name]
        item = table.get_item(arguments["TableName"], arguments["Key"])
        image: dict[str, Any] = json.loads(dynamo_json_dump(item.attrs)) if item else {}
        return image or None
