"""Where the people of each campaign come from."""

import base64
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mailroom.aws import clients
from mailroom.aws.dynamo import plain
from mailroom.campaigns.audience import Audience, Cursor, Found, Page, Recipient, Rows, name_of
from mailroom.campaigns.definition import Csv, Definition, JsonLines, Modules, Postgresql, Table

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

KEY = "(key)"
"""What a key is called that stands in no column."""


class Sources:
    """The audiences of a bundle's campaigns, each made once a process."""

    def __init__(self, modules: Modules) -> None:
        self._modules = modules
        self._made: dict[str, Audience] = {}

    def __call__(self, definition: Definition) -> Audience:
        """A campaign's audience. Raises Invalid where its definition cannot be followed."""
        if definition.name not in self._made:
            self._made[definition.name] = self._make(definition)
        return self._made[definition.name]

    def _make(self, definition: Definition) -> Audience:
        # Each kind is imported by the campaigns that have it: psycopg alone takes longer than all the rest.
        match definition.audience:
            case Postgresql() as asked:
                from mailroom.campaigns.postgresql import PostgresqlAudience

                return PostgresqlAudience(asked)
            case Csv() | JsonLines() as asked:
                from mailroom.campaigns.files.s3 import FileAudience

                return FileAudience(asked, clients.s3())
            case Table() as asked:
                return TableAudience(asked, clients.dynamodb())
            case asked:
                return _ModuleAudience(self._modules, definition, asked.columns)


class _ModuleAudience(Struct, frozen=True):
    """What the campaign's own module hands out."""

    modules: Modules
    definition: Definition
    columns: tuple[str, ...]

    def page(self, page: Page) -> Found:
        """Its people, held to the same as those of a file."""
        found = self.modules.recipients(self.definition, page)
        rows = Rows(KEY, self.columns)
        for at, each in enumerate(found.recipients, 1):
            rows.add(f"person {at} of a page", {**each.attributes, KEY: each.key})
        # The key is not among what they said of themselves.
        people = [Recipient(each.key, _without_key(each)) for each in rows.recipients]
        return Found(people, found.cursor, [*found.faults, *rows.faults])


def _without_key(recipient: Recipient) -> dict[str, Any]:
    return {name: value for name, value in recipient.attributes.items() if name != KEY}


class TableAudience:
    """All items of one DynamoDB table, or of an index of one. The order of a scan is DynamoDB's own, and
    stays."""

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
