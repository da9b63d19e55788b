"""Erases the rows of the table `search` by which a person's messages are found."""

from collections.abc import Iterator, Mapping
from typing import Any

from mailroom.aws.dynamo_values import string
from mailroom.message.address import spellings
from mailroom.search.rows import TO, Row
from mailroom_ops.people.stage_data import ErasurePlace, ErasureRun, StageData


def erase_rows(run: ErasureRun) -> ErasurePlace:
    """Erase or count the person's rows in the table `search`, of all messages."""
    place = ErasurePlace("search")
    for keys in _rows_of(run):
        place.found += 1
        if run.apply:
            run.data.delete("search", keys)
            place.erased += 1
    return place


def delete_rows(data: StageData, item: Mapping[str, Any]) -> int:
    """Delete all rows of a message. `item` is its ledger item in plain Python. The row in the list of the
    newest messages is deleted too, because the message's id may contain the recipient. Return the number of
    deleted rows that led from a recipient to the message."""
    rows: list[Row] = [] if data.rows is None else data.rows.of(item)
    deleted = [row for row in rows if data.delete("search", row.place)]
    return sum(row.found_by.startswith(TO) for row in deleted)


def _rows_of(run: ErasureRun) -> Iterator[dict[str, Any]]:
    """Yield the keys of the person's rows, for all spellings of the recipient."""
    rows = run.data.rows
    if rows is None:
        return
    for form in spellings(run.person.recipient):
        pages = run.data.dynamodb.get_paginator("query").paginate(
            TableName=run.data.table("search"),
            KeyConditionExpression="found_by = :found_by",
            ExpressionAttributeValues={":found_by": string(rows.partition(form))},
        )
        for page in pages:
            yield from ({name: row[name] for name in ("found_by", "put")} for row in page["Items"])
