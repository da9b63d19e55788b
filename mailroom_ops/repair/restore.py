"""The command `restore`: copies lost items of a table back from a table that point-in-time recovery has
created, or from an export of the second copy.

Ledger items expire; mailbox items do not, unless a setting limits their lifetime. So the ledger may no longer
show that a restored message was sent. Each restored mailbox item therefore gets the attribute `restored_id`,
and the function `dispatch` does not queue it. The command lists the restored messages without a ledger item:
it cannot distinguish an expired ledger item from a message that `dispatch` never received.

A campaign's run may have been stopped, paused or started again after the backup, so each restored run is
paused until an operator decides.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from operator import is_
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from botocore.exceptions import ClientError
from msgspec import Struct

from mailroom.aws.dynamo_updates import item_of
from mailroom.aws.dynamo_values import string
from mailroom.campaigns.runs import MAX_TROUBLE
from mailroom.errors import quantity
from mailroom.ledger.batch import items_of
from mailroom.ledger.items import MARK
from mailroom.ledger.waits import OF_RUNS
from mailroom.mailbox import RESTORED
from mailroom.message.message import Key, encode
from mailroom_ops.repair.exported import read_export
from mailroom_ops.shared.deployed_stage import aws_session, config_for_puts, name
from mailroom_ops.shared.files import write_whole
from mailroom_ops.shared.options import AsJson, Stage, Yes
from mailroom_ops.shared.screen import Refused, aws_faults, bar, confirm, print_answer, print_line
from mailroom_ops.shared.tables import key_of

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

PUTS_AT_ONCE = 16
_SHOWN = 20
Item = Mapping[str, Any]


Table = Literal["ledger", "mailbox", "contents", "suppressions", "preferences", "campaign-runs"]
"""Tables whose items cannot be derived from other data."""


class Restored(Struct, frozen=True):
    """Output of the command `restore`."""

    stage: str
    table: str
    source: str
    read: int
    """Number of items in the table or export `source`."""
    copied: int
    """Number of items that were missing or older in the stage's table."""
    kept: int
    """Number of items that are the same or newer in the stage's table."""
    unknown: int
    """Number of mailbox messages, restored by this run or an earlier one, without a ledger item."""
    unknown_file: str
    """File with the ids and event_types of the `unknown` messages, a JSON object a line; empty if there are
    none."""
    too_large: list[Key]
    """Messages of the mailbox that were not restored, because their items would be too large with the
    attribute `restored_id`."""


def restore(
    table: Annotated[Table, typer.Argument(help="The stage's table that lost items.")],
    source: Annotated[
        str,
        typer.Option(
            "--from",
            help="The table that the recovery created or, for suppressions and preferences, the folder of an "
            "export, such as s3://bucket/prefix/AWSDynamoDB/ID/.",
        ),
    ],
    stage: Stage = "dev",
    *,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Copy lost items of a table back from a restored table.

    It copies, from a restored table or an export, items that are missing and, in the ledger, items that are
    older than the restored ones. Other items are not changed, so you can run an interrupted copy again. First
    stop all functions that send or read the streams, and copy the ledger before the mailbox. The steps:
    `mailroom docs deploy-update-go-back#restoring-a-table`, and for an export `mailroom docs second-copy`.

    A campaign's run that is copied back is paused, because it may have been stopped, paused or started again
    after the backup: its messages wait until you use mailroom campaign resume, stop or start.

    A mailbox item that is copied back is not sent again. Messages without a ledger item are counted, and
    listed in a file: their ledger items have expired, or they were put just before the loss. With mailroom
    messages resend, you send the messages again that you know were never sent. Exit code 2: the command could
    not do its work.

    Example: mailroom restore ledger --from mailroom-prod-ledger-restored --stage prod
    """
    with aws_faults(stage):
        session = aws_session()
        client = session.client("dynamodb", config=config_for_puts(PUTS_AT_ONCE))
        target = name(stage, table)
        keys = _keys(client, target)
        if source.startswith("s3://"):
            total, pages = read_export(session.client("s3"), source, table)
        else:
            total, pages = _read_table(client, source, target, keys)
        confirm(f"Copy missing items of {target} from {source} (about {quantity(total, 'item')})?", yes=yes)
        read = copied = 0
        paused = f"since {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}: restored from a backup"
        unknown: list[Key] = []
        too_large: list[Key] = []
        with bar("copied", quiet=as_json) as advance, ThreadPoolExecutor(PUTS_AT_ONCE) as threads:
            for items in pages:
                if table == "mailbox":
                    items = [{**item, RESTORED: item["id"]} for item in items]
                elif table == "campaign-runs":
                    items = [_paused(item, paused) for item in items]
                items = [_without_past_wait(item) for item in items]
                stored = [*threads.map(lambda item: _put(client, target, keys, item), items)]
                copied += sum(map(is_, items, stored))
                too_large += [key_of(item) for item, row in zip(items, stored, strict=True) if not row]
                unknown += _unknown(client, name(stage, "ledger"), stored)
                read += len(items)
                advance(read, total)
        if file := f"{target}-unknown.jsonl" if unknown else "":
            write_whole(Path(file), "".join(f"{encode(key)}\n" for key in unknown).encode())
    unchanged = read - copied - len(too_large)
    answer = Restored(stage, table, source, read, copied, unchanged, len(unknown), file, too_large)
    print_answer(answer, partial(_show, first=unknown[:_SHOWN]), as_json=as_json)


def _read_table(
    client: "DynamoDBClient", source: str, target: str, keys: list[str]
) -> tuple[int, Iterator[list[dict[str, Any]]]]:
    """Return the approximate number of items in the restored table `source`, and its pages of items."""
    if source == target:
        raise Refused(f"--from: {source} is the stage's own table; give the table of the recovery.")
    if keys != _keys(client, source):
        raise Refused(f"--from: {source} is not a copy of {target}: its key attributes differ.")
    total = client.describe_table(TableName=source)["Table"].get("ItemCount", 0)
    pages = client.get_paginator("scan").paginate(TableName=source, ConsistentRead=True)
    return total, (page["Items"] for page in pages)


def _without_past_wait(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item without the attributes of its wait if the wait may be over by now, as each wait for a
    campaign's run: the message may have been sent since, and the function `release` would queue it again. The
    command `messages resend --stuck` finds such a message, and an operator decides."""
    waits_in = item.get("waits_in", {}).get("S", "")
    waits_for_run = waits_in.startswith(OF_RUNS)
    if not waits_in or (int(item["waits_at"]["N"]) > time.time() and not waits_for_run):
        return item
    return {name: value for name, value in item.items() if name not in MARK}


def _paused(item: dict[str, Any], words: str) -> dict[str, Any]:
    """Return the item of a run that is paused for the reason in `words`. They include the reason of a pause
    in the backup."""
    if earlier := item.get("paused", {}).get("S"):
        words = f"{words}, in which it was paused {earlier}"
    return {**item, "paused": string(words[:MAX_TROUBLE])}


def _keys(client: "DynamoDBClient", table: str) -> list[str]:
    return [key["AttributeName"] for key in client.describe_table(TableName=table)["Table"]["KeySchema"]]


def _put(client: "DynamoDBClient", table: str, keys: list[str], item: Item) -> Item:
    """Put an item if the table does not have it, or has an older version by `updatedAt`. Return the item that
    the table has afterwards: the object `item` itself if it was put, or {} if it is too large with the
    attribute `restored_id`."""
    condition, names, values = "attribute_not_exists(#key)", {"#key": keys[0]}, {}
    if "updatedAt" in item:
        condition += " OR #at < :restored"
        names["#at"], values[":restored"] = "updatedAt", item["updatedAt"]
    options: dict[str, Any] = {"ExpressionAttributeValues": values} if values else {}
    try:
        client.put_item(
            TableName=table,
            Item=dict(item),
            ConditionExpression=condition,
            ExpressionAttributeNames=names,
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
            **options,
        )
    except ClientError as error:
        if RESTORED in item and "Item size" in error.response["Error"].get("Message", ""):
            return {}
        if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
            raise
        return item_of(error.response)
    return item


def _unknown(client: "DynamoDBClient", ledger: str, items: Iterable[Item]) -> list[Key]:
    """Return the keys of the restored mailbox items among `items` whose ledger items are missing."""
    keys = [key_of(item) for item in items if RESTORED in item]
    known_keys = items_of(client, ledger, keys)
    return [key for key in keys if key not in known_keys]


def _show(answer: Restored, *, first: Sequence[Key]) -> None:
    print_line(
        f"Copied from {answer.source} into the {answer.table} of {answer.stage}: {answer.copied:,} of "
        f"{quantity(answer.read, 'item')}; not lost: {answer.kept:,}."
    )
    if answer.table == "campaign-runs" and answer.copied:
        which = f"NAME --run RUN --stage {answer.stage}"
        print_line(
            "Each of these runs is paused, because it may have been stopped, paused or started again after "
            f"the backup. mailroom campaign status NAME --stage {answer.stage} shows it. If it has to go on: "
            f"mailroom campaign resume {which} --why REASON. If not: mailroom campaign stop {which} --why "
            "REASON. A run that was stopped in the backup goes on with mailroom campaign start."
        )
    if answer.too_large:
        print_line(
            "Not restored, because the items would exceed DynamoDB's 400 KB with the attribute restored_id: "
            f"{', '.join(key.id for key in answer.too_large)}. Their producer can put smaller items."
        )
    if first:
        print_line(
            f"{quantity(answer.unknown, 'message has', 'messages have')} no ledger item, because it has "
            "expired, or the put came just before the loss. Mailroom does not send such a message again. "
            f"{answer.unknown_file} lists them all, the "
            f"first being {', '.join(key.id for key in first)}. If you know that some were never sent, copy "
            f"their lines into another file and run: mailroom messages resend - --stage {answer.stage} < FILE"
        )
