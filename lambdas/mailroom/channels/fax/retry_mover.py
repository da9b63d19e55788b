"""Moves faxes that wait for a retry, or for their `send_at`, into the fax queue when their wait is over."""

import time
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mailroom.aws import clients, queues
from mailroom.aws.queues import Entry
from mailroom.channels.fax.contract import Fax, item_of
from mailroom.clock import END_OF_TIME, Clock
from mailroom.environment import RetryFaxSettings
from mailroom.errors import Invalid, Malformed
from mailroom.message.message import decode, encode, parse
from mailroom.telemetry import count, logger

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient


class RetryMover(Struct, frozen=True):
    """Consumer of the standard queue in which faxes wait, because a FIFO queue cannot delay a message.

    Moving a fax twice is harmless: the fax queue drops a copy that arrives within five minutes, and a later
    copy is not sent because of the fax's claim in the ledger.
    """

    sqs: "SQSClient"
    queue_url: str
    fax_queue_url: str
    clock: Clock = time.time

    @classmethod
    def of(cls, settings: RetryFaxSettings) -> "RetryMover":
        return cls(clients.sqs(), settings.queue_url, settings.fax_queue_url)

    def handle(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Move the faxes of a batch that are due to the fax queue. Return the records of all other faxes as
        batch item failures, so that SQS keeps them in the queue of waiting faxes: faxes that are not due,
        malformed, or not accepted by the fax queue."""
        entries: list[Entry] = []
        waits: dict[str, tuple[str, float]] = {}
        for record in event["Records"]:
            try:
                item = item_of(decode(record["body"]))
                wait = _not_before(item) - self.clock()
                if wait > 0:
                    waits[record["messageId"]] = (record["receiptHandle"], wait)
                    continue
                entries.append(self._entry(record["messageId"], item))
            except (Malformed, Invalid) as fault:
                logger.error("not a fax", reason=str(fault), message_id=record["messageId"])
                count("Malformed")
                waits[record["messageId"]] = (record["receiptHandle"], queues.AT_ONCE)
        queues.set_visibility(self.sqs, self.queue_url, list(waits.values()))
        failed = waits.keys() | queues.send(self.sqs, self.fax_queue_url, entries)
        count("Moved", len(entries) + len(waits) - len(failed))
        return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in sorted(failed)]}

    def _entry(self, reference: str, item: dict[str, Any]) -> Entry:
        fax = parse(item, {"fax": Fax})
        body = {name: value for name, value in item.items() if name != "not_before"}
        return Entry(reference, encode(body), group=fax.group, duplicate=fax.duplicate)


def _not_before(item: Mapping[str, Any]) -> float:
    """Return the earliest time of the attempt, in epoch seconds; 0 if the fax need not wait. Raises
    Invalid."""
    value = item.get("not_before", 0)
    if type(value) not in {int, Decimal} or not -END_OF_TIME < value < END_OF_TIME:
        raise Invalid("not_before", "is not a valid time; use epoch seconds")
    return float(value)
