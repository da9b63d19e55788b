"""`restore`: copies back what a table has lost, out of a table that point-in-time recovery has made."""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer
from botocore.exceptions import ClientError
from msgspec import Struct

from mailroom_ops.options import AsJson, Stage, Yes
from mailroom_ops.screen import Refused, aws_faults, bar, confirm, print_answer, print_line
from mailroom_ops.stage import aws_session, config_for_puts, name

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

PUTS_AT_ONCE = 16


class Table(StrEnum):
    """The tables that keep what cannot be made anew."""

    LEDGER = "ledger"
    MAILBOX = "mailbox"
    SUPPRESSIONS = "suppressions"
    PREFERENCES = "preferences"
    RUNS = "campaign-runs"


class Restored(Struct, frozen=True):
    """Answer of `restore`: of `read` items of the table `source`, `copied` were missing or older in the
    stage's table, and `kept` were not: those were left as they are."""

    stage: str
    table: str
    source: str
    read: int
    copied: int
    kept: int


def restore(
    table: Annotated[Table, typer.Argument(help="The stage's table that lost items.")],
    source: Annotated[str, typer.Option("--from", help="The table that the recovery has made.")],
    stage: Stage = "dev",
    *,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Copy back what a table has lost, out of a restored one: items that are missing, and in the ledger also
    those that are older than the restored ones.

    No other item is changed, so an interrupted copy is run again. First stop what sends and reads the
    streams, and copy the ledger before the mailbox: docs/going-back.md says how. Exit code 2: the command
    could not do its work.

    Example: mailroom restore ledger --from mailroom-prod-ledger-restored --stage prod
    """
    with aws_faults(stage):
        client = aws_session().client("dynamodb", config=config_for_puts(PUTS_AT_ONCE))
        target = name(stage, table)
        if source == target:
            raise Refused(f"--from: {source} is the table itself; give the one that the recovery has made.")
        keys = _keys(client, target)
        if keys != _keys(client, source):
            raise Refused(f"--from: {source} has other keys than {target}; it is no copy of it.")
        total = client.describe_table(TableName=source)["Table"].get("ItemCount", 0)
        confirm(f"Copy what {target} lacks out of {source}, some {total:,} items?", yes=yes)
        read = copied = 0
        with bar("copied", quiet=as_json) as advance, ThreadPoolExecutor(PUTS_AT_ONCE) as threads:
            for items in _pages(client, source):
                copied += sum(threads.map(lambda item: _copied(client, target, keys, item), items))
                read += len(items)
                advance(read, total)
    print_answer(Restored(stage, table, source, read, copied, read - copied), _show, as_json=as_json)


def _keys(client: "DynamoDBClient", table: str) -> list[str]:
    return [each["AttributeName"] for each in client.describe_table(TableName=table)["Table"]["KeySchema"]]


def _pages(client: "DynamoDBClient", table: str) -> Iterator[list[Any]]:
    for page in client.get_paginator("scan").paginate(TableName=table, ConsistentRead=True):
        yield page["Items"]


def _copied(client: "DynamoDBClient", table: str, keys: list[str], item: Mapping[str, Any]) -> bool:
    """Whether the item was missing, or older. The newer one wins, whoever wrote it."""
    condition, names, values = "attribute_not_exists(#key)", {"#key": keys[0]}, {}
    if "updatedAt" in item:
        condition += " OR #at < :restored"
        names["#at"], values[":restored"] = "updatedAt", item["updatedAt"]
    more: dict[str, Any] = {"ExpressionAttributeValues": values} if values else {}
    try:
        client.put_item(
            TableName=table,
            Item=dict(item),
            ConditionExpression=condition,
            ExpressionAttributeNames=names,
            **more,
        )
    except ClientError as error:
        if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
            raise
        return False
    return True


def _show(answer: Restored) -> None:
    print_line(
        f"{answer.copied:,} of {answer.read:,} items of {answer.source} were copied into the {answer.table} "
        f"of {answer.stage}; the others are there as they should be."
    )
