"""An outbox: messages that an application writes into its own PostgreSQL, in the transaction of what they
tell.

`relay` puts them into the mailbox, and marks each row once its message is there. Where it dies in between,
the rows are put again, and the mailbox knows their ids. See docs/transactions.md.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

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

# Two that run at once get different rows.
_WAITING = """
SELECT row_id, item FROM mailroom_outbox WHERE put_at IS NULL AND problem IS NULL
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
    results: list[SendResult] = []
    mailroom.send_many((item for _, item in found), on_result=results.append)
    put = []
    for (row_id, _), result in zip(found, results, strict=True):
        summary.add(result)
        if result.ok:
            put.append(row_id)
        elif result.state != "failed":
            connection.execute(_REFUSED, [result.error, row_id])
    connection.execute(_PUT, [put])
    return len(found) == rows
