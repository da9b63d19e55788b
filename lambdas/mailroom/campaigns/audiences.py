"""The audience that a campaign's definition asks for."""

from typing import TYPE_CHECKING

from mailroom.campaigns.audience import Audience, Connections
from mailroom.campaigns.definition import Csv, Definition, JsonLines, Postgresql, Table
from mailroom.errors import Invalid

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_s3 import S3Client


def audience_of(
    definition: Definition, *, databases: Connections, s3: "S3Client", dynamodb: "DynamoDBClient"
) -> Audience:
    """The audience. Raises Invalid for one that is none of these: a module's own, or a bad location."""
    match definition.audience:
        case Postgresql() as asked:
            from mailroom.campaigns.postgresql import PostgresqlAudience

            return PostgresqlAudience(asked, databases)
        case Csv() as asked:
            from mailroom.campaigns.csv_lines import CsvAudience

            return CsvAudience(asked, s3)
        case JsonLines() as asked:
            from mailroom.campaigns.json_lines import JsonLinesAudience

            return JsonLinesAudience(asked, s3)
        case Table() as asked:
            from mailroom.campaigns.table_items import TableAudience

            return TableAudience(asked, dynamodb)
    raise Invalid("audience.kind", "is the campaign's own module; ask that one")
