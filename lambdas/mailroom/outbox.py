"""Transactional outbox: a table of messages in an application's own PostgreSQL database. The application
inserts a message in the same transaction as its own data.

`relay` puts the messages into the mailbox, and then marks their rows. After a crash in between, the messages
are put again, and the mailbox ignores them because of their ids. See `mailroom docs send-in-a-transaction`.
"""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from mailroom.aws.dynamo_values import MAX_LEVELS
from mailroom.client import Mailroom, SendResult, Summary

if TYPE_CHECKING:
    from psycopg import Connection

__all__ = ["relay"]

TABLE = """
CREATE TABLE mailroom_outbox (
  row_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  item jsonb NOT NULL CHECK (jsonb_typeof(item) = 'object'),
  put_at timestamptz,
  problem text
);
CREATE INDEX mailroom_outbox_waiting ON mailroom_outbox (row_id) WHERE put_at IS NULL AND problem IS NULL;
"""
"""SQL that creates the outbox. `item` is the message, `put_at` is the time when it was put into the mailbox,
and `problem` is the reason why the mailbox refused it. A row without `put_at` and `problem` waits."""
ROWS = 500
"""Maximum number of rows in one transaction. After a crash, up to this number of messages are put again."""

# SKIP LOCKED gives concurrent relays different rows. The item is read as text, because one item that psycopg
# cannot decode would make the whole query fail.
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
    """Put the messages of all waiting rows into the mailbox, up to `rows` in one transaction, and return the
    counts of the results.

    `connect` opens a connection that commits when its context ends, and rolls back after an exception:
    `psycopg.connect`, or a connection of `mailroom.campaigns.databases`. If the mailbox refuses a message,
    its row gets the problem, and does not delay other rows. If AWS did not accept a message (`failed` in the
    summary), its row waits for the next call, and this call ends. Raises psycopg's errors.
    """
    summary, unfinished = Summary(), True
    while unfinished and not summary.failed:
        with connect() as connection:
            unfinished = _relay(connection, mailroom, rows, summary)
    return summary


def _relay(connection: "Connection[Any]", mailroom: Mailroom, limit: int, summary: Summary) -> bool:
    """Put the messages of up to `limit` rows, and return whether more rows may be waiting."""
    rows = connection.execute(_WAITING, [limit]).fetchall()
    items, results = dict[int, Any](), dict[int, SendResult]()
    for row_id, text, id_, event_type in rows:
        try:
            # Numbers are read as Decimal, because PostgreSQL's numbers have up to 131,072 digits. The
            # mailbox's writer refuses numbers that are too long, and names the attribute.
            items[row_id] = json.loads(text, parse_int=Decimal, parse_float=Decimal)
        except RecursionError:
            problem = f"item: has too many levels of lists and maps; use at most {MAX_LEVELS}"
            results[row_id] = SendResult(id_ or "", event_type or "", "refused", problem)
    sent: list[SendResult] = []
    mailroom.send_many(items.values(), on_result=sent.append)
    results |= zip(items, sent, strict=True)
    for row_id, result in results.items():
        summary.add(result)
        if not result.ok and result.state != "failed":
            connection.execute(_REFUSED, [result.error, row_id])
    connection.execute(_PUT, [[row_id for row_id, result in results.items() if result.ok]])
    return len(rows) == limit
