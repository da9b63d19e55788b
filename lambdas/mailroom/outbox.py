"""An outbox: messages that an application writes into its own PostgreSQL, in the transaction of what they
tell.

`relay` puts them into the mailbox, and marks each row once its message is there. Where it dies in between,
the rows are put again, and the mailbox knows their ids. See docs/transactions.md.
"""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from mailroom.aws.dynamo import MAX_LEVELS
from mailroom.client import Mailroom, SendResult, Summary

if TYPE_CHECKING:
    from psycopg import Connection

TABLE = """
CREATE TABLE mailroom_outbox (
  row_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  item jsonb NOT NULL CHECK (jsonb_typeof(item) = 'object'),
  put_at timestamptz,
  problem text
);
CREATE INDEX mailroom_outbox_waiting ON mailroom_outbox (row_id) WHERE put_at IS NULL AND problem IS NULL;
"""
"""`item` is the message. `put_at`: when it was put. `problem`: why it can never be. Neither: it waits."""
ROWS = 500
"""Rows of one transaction: a crash puts so many again."""

# Two that run at once get different rows. The item is text: psycopg would decode all rows or none.
_WAITING = """
SELECT row_id, item::text, item->>'id', item->>'event_type'
FROM mailroom_outbox WHERE put_at IS NULL AND problem IS NULL
ORDER BY row_id LIMIT %s FOR UPDATE SKIP LOCKED
"""
_PUT = "UPDATE mailroom_outbox SET put_at = now() WHERE row_id = ANY(%s)"
_REFUSED = "UPDATE mailroom_outbox SET problem = %s WHERE row_id = %s"


def relay(
    connect: Callable[[], "AbstractContextManager[Connection[Any]]"], mailroom: Mailroom, rows: int = ROWS
) -> Summary:
    """Put the messages of all rows that wait, `rows` in one transaction.

    `connect` opens a connection that commits when its context ends, and rolls back where that is an error:
    psycopg's own, or one of `mailroom.campaigns.databases`. What can never be put is marked with its problem
    and holds nothing up. What AWS did not take (`failed` in the answer) waits for the next call, and ends
    this one. Raises psycopg's errors.
    """
    summary, more = Summary(), True
    while more and not summary.failed:
        with connect() as connection:
            more = _relay(connection, mailroom, rows, summary)
    return summary


def _relay(connection: "Connection[Any]", mailroom: Mailroom, rows: int, summary: Summary) -> bool:
    """One transaction's rows; whether there may be more."""
    found = connection.execute(_WAITING, [rows]).fetchall()
    items, results = dict[int, Any](), dict[int, SendResult]()
    for row_id, text, id_, event_type in found:
        try:
            # PostgreSQL's numbers have up to 131,072 digits; who stores an item names the one at fault.
            items[row_id] = json.loads(text, parse_int=Decimal, parse_float=Decimal)
        except RecursionError:
            problem = f"item: has too many levels of lists and maps; use at most {MAX_LEVELS}"
            results[row_id] = SendResult(id_ or "", event_type or "", "refused", problem)
    sent: list[SendResult] = []
    mailroom.send_many(items.values(), on_result=sent.append)
    results |= zip(items, sent, strict=True)
    put = []
    for row_id, result in results.items():
        summary.add(result)
        if result.ok:
            put.append(row_id)
        elif result.state != "failed":
            connection.execute(_REFUSED, [result.error, row_id])
    connection.execute(_PUT, [put])
    return len(found) == rows
