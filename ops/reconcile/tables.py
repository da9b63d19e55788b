"""What DynamoDB says of a stage's two tables."""

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient


class Described(Struct, frozen=True):
    """One table. `since`: when it was made (epoch seconds). `items`: roughly, for DynamoDB counts every six
    hours. `restored`: it was made of a backup, so what it holds may be older than itself."""

    arn: str
    since: float
    items: int
    restored: bool


class Tables(Struct, frozen=True):
    """Both."""

    mailbox: Described
    ledger: Described


def described(client: "DynamoDBClient", name: str) -> Described:
    """A table by its name."""
    found = client.describe_table(TableName=name)["Table"]
    since = found["CreationDateTime"].timestamp()
    return Described(found["TableArn"], since, found.get("ItemCount", 0), bool(found.get("RestoreSummary")))
