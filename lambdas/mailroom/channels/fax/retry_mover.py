"""Faxes that waited for their next attempt, or for their time: back into the fax queue once it has come."""

import time
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

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


class RetryMover:
    """Works for the standard queue that stands in for the delays which a FIFO queue does not have.

    Moving one twice is harmless: the queue drops copies for five minutes, the ledger after that.
    """

    def __init__(
        self, sqs: "SQSClient", queue_url: str, fax_queue_url: str, clock: Clock = time.time
    ) -> None:
        self._sqs = sqs
        self._queue_url = queue_url
        self._fax_queue_url = fax_queue_url
        self._clock = clock

    @classmethod
    def of(cls, settings: RetryFaxSettings) -> "RetryMover":
        return cls(clients.sqs(), settings.queue_url, settings.fax_queue_url)

    def handle(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """One batch; the records that must come back: not due, malformed, or not taken by the fax queue."""
        entries: list[Entry] = []
        waits: dict[str, tuple[str, float]] = {}
        for record in event["Records"]:
            try:
                item = item_of(decode(record["body"]))
                wait = _not_before(item) - self._clock()
                if wait > 0:
                    waits[record["messageId"]] = (record["receiptHandle"], wait)
                    continue
                entries.append(self._entry(record["messageId"], item))
            except (Malformed, Invalid) as fault:
                logger.error("not a fax", reason=str(fault), message_id=record["messageId"])
                count("Malformed")
                waits[record["messageId"]] = (record["receiptHandle"], queues.AT_ONCE)
        queues.set_visibility(self._sqs, self._queue_url, list(waits.values()))
        failed = waits.keys() | queues.send(self._sqs, self._fax_queue_url, entries)
        count("Moved", len(entries) + len(waits) - len(failed))
        return {"batchItemFailures": [{"itemIdentifier": each} for each in sorted(failed)]}

    def _entry(self, reference: str, item: dict[str, Any]) -> Entry:
        fax = parse(item, {"fax": Fax})
        body = {name: value for name, value in item.items() if name != "not_before"}
        return Entry(reference, encode(body), group=fax.group, duplicate=fax.duplicate)


def _not_before(item: Mapping[str, Any]) -> float:
    """Epoch seconds; 0 where it may go at once. Raises Invalid."""
    value = item.get("not_before", 0)
    if (
        isinstance(value, bool)
        or not isinstance(value, int | Decimal)
        or not -END_OF_TIME < value < END_OF_TIME
    ):
        raise Invalid("not_before", "is no point in time; use epoch seconds")
    return float(value)
