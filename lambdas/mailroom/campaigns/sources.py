"""Where the people of each campaign come from, and the databases that it may ask."""

import base64
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mailroom.aws import clients
from mailroom.aws.dynamo_values import plain
from mailroom.campaigns.audience import Audience, Connections, Found, Page, Rows, name_of
from mailroom.campaigns.definition import Csv, Definition, DynamoTable, JsonLines, Modules, Postgresql
from mailroom.environment import DatabaseSettings

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

KEY = "(key)"
"""What a key is called that stands in no column."""


def databases_of(settings: Mapping[str, DatabaseSettings]) -> Connections | None:
    """The stage's databases; None: the settings name none, and the time to load psycopg is saved."""
    if not settings:
        return None
    from mailroom.campaigns.databases import Databases

    return Databases(settings, clients.secretsmanager())


def audience_of(modules: Modules, definition: Definition) -> Audience:
    """A campaign's audience. Raises Invalid where its definition cannot be followed."""
    # A kind is imported where a campaign has it: psycopg takes longer to load than all the rest.
    match definition.audience:
        case Postgresql() as asked:
            from mailroom.campaigns.postgresql import PostgresqlAudience

            return PostgresqlAudience(asked)
        case Csv() | JsonLines() as asked:
            from mailroom.campaigns.file_audience import FileAudience

            return FileAudience(asked, clients.s3())
        case DynamoTable() as asked:
            return TableAudience(asked, clients.dynamodb())
        case asked:
            return _ModuleAudience(modules, definition, asked.columns)


class _ModuleAudience(Struct, frozen=True):
    """What the campaign's own module hands out."""

    modules: Modules
    definition: Definition
    columns: tuple[str, ...]

    def page(self, page: Page) -> Found:
        """The module's people, held to the same rules as those of a file."""
        found = self.modules.recipients(self.definition, page)
        rows = Rows(KEY, self.columns)
        for at, each in enumerate(found.recipients, 1):
            rows.add(f"person {at} of a page", {**each.attributes, KEY: each.key})
        for each in rows.recipients:
            del each.attributes[KEY]  # the module did not give it as an attribute
        return Found(rows.recipients, found.cursor, [*found.faults, *rows.faults])


class TableAudience(Struct, frozen=True):
    """All items of one DynamoDB table, or of an index of one. The order of a scan is DynamoDB's own, and
    stays."""

    definition: DynamoTable
    client: "DynamoDBClient"

    def page(self, page: Page) -> Found:
        """One page; a megabyte of items ends it before it is full. Raises botocore's errors."""
        asked = self.definition
        request: dict[str, Any] = {"TableName": asked.table, "Limit": page.size}
        if asked.index is not None:
            request["IndexName"] = asked.index
        if page.cursor is not None:
            request["ExclusiveStartKey"] = _recoded(page.cursor, base64.b64decode)
        reply = self.client.scan(**request)
        rows = Rows(asked.key, asked.columns)
        for at, item in enumerate(reply["Items"], 1):
            values = plain(item)
            rows.add(name_of(values, asked.key, f"item {at} of the page"), values)
        last = reply.get("LastEvaluatedKey")
        return rows.found(_recoded(last, lambda key: base64.b64encode(key).decode()) if last else None)


def _recoded(key: Any, code: Callable[[Any], Any]) -> Any:
    """A key of the table with its bytes in another form: a cursor is JSON, which has none."""
    return {
        name: {kind: code(value) if kind == "B" else value}
        for name, typed in key.items()
        for kind, value in typed.items()
    }
