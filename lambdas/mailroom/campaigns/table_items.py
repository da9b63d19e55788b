"""An audience in a DynamoDB table, or in an index of one."""

import base64
from typing import TYPE_CHECKING, Any

from mailroom.aws.dynamo import plain
from mailroom.campaigns.audience import Cursor, Found, Page
from mailroom.campaigns.definition import Table
from mailroom.campaigns.rows import Rows, name_of

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient


class TableAudience:
    """All items of one table. The order of a scan is DynamoDB's own, and stays."""

    def __init__(self, definition: Table, client: "DynamoDBClient") -> None:
        self._definition = definition
        self._client = client
        self._request: dict[str, Any] = {"TableName": definition.table}
        if definition.index is not None:
            self._request["IndexName"] = definition.index

    def page(self, page: Page) -> Found:
        """One page; a megabyte of items ends it before it is full. Raises botocore's errors."""
        request = {**self._request, "Limit": page.size}
        if page.cursor is not None:
            request["ExclusiveStartKey"] = _key(page.cursor)
        reply = self._client.scan(**request)
        rows = Rows(self._definition.key, self._definition.columns)
        for at, item in enumerate(reply["Items"], 1):
            values = plain(item)
            rows.add(name_of(values, self._definition.key, f"item {at} of the page"), values)
        last = reply.get("LastEvaluatedKey")
        return rows.found(_cursor(last) if last else None)


def _cursor(key: Any) -> Cursor:
    """A key as JSON has it: bytes as base64."""
    return {
        name: {kind: base64.b64encode(value).decode() if kind == "B" else value}
        for name, typed in key.items()
        for kind, value in typed.items()
    }


def _key(cursor: Cursor) -> Any:
    return {
        name: {kind: base64.b64decode(value) if kind == "B" else value}
        for name, typed in cursor.items()
        for kind, value in typed.items()
    }
