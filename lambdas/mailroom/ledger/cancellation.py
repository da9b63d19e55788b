"""Cancellation of messages that wait; used by producers, by the HTTP API and by operators.

Producers import this module as well, so boto3 is the only package that it may import.
"""

from mailroom.clock import epoch
from mailroom.ledger.status_reader import READY, LedgerReader, MessageStatus
from mailroom.ledger.table import LedgerTable


def waits(status: MessageStatus, current_time: float) -> bool:
    """Return whether a message waits at `current_time` (epoch seconds), so that it can be cancelled. Any
    other message has ended, or is on its way to the function that sends it."""
    due = epoch(status.scheduled_for) if status.scheduled_for else 0.0
    return bool(status.waits_for) or (status.status == READY and due > current_time)


def cancel(ledger: LedgerTable, reader: LedgerReader, status: MessageStatus, current_time: float) -> bool:
    """End a message that waits at `current_time` (epoch seconds). Returns False if the message does not wait
    any more."""
    if not waits(status, current_time):
        return False
    callback_url = (reader.item(status.id, status.event_type) or {}).get("callback_url")
    return ledger.cancel(
        status, to=status.to, callback_url=callback_url if isinstance(callback_url, str) else None
    )
