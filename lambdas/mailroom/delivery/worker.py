"""The worker: one batch of queue records in, those that must come back out."""

import random
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic

from mailroom.aws import clients, queues
from mailroom.clock import Clock
from mailroom.content.payloads import Payloads
from mailroom.delivery.delivery import Adapter, Delivery, M, Pace, R, Received, Tools, Wait
from mailroom.environment import Sender, SuppressingSender
from mailroom.errors import Malformed
from mailroom.ledger.ledger import Ledger
from mailroom.message.message import Message, decode, key_of
from mailroom.recipients.choices import Preferences, Suppressions
from mailroom.telemetry import count, logger, record_duration, working_on

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient


class Worker(Generic[M, R]):
    """Works for one queue with one adapter; every sender is this class."""

    def __init__(
        self,
        settings: Sender,
        adapter: Adapter[M, R],
        *,
        ledger: Ledger,
        payloads: Payloads,
        sqs: "SQSClient",
        clock: Clock = time.time,
        sleep: Callable[[float], None] = time.sleep,
        jitter: Callable[[], float] = random.random,
        suppressions: Suppressions | None = None,
        preferences: Preferences | None = None,
        delivery: "type[Delivery[M, R]]" = Delivery,
    ) -> None:
        self._queue_url = settings.queue_url
        self._sqs = sqs
        self._pace = Pace(settings.pace_seconds, clock, sleep)
        tools = Tools(ledger, payloads, sqs, self._pace, clock, sleep, jitter, suppressions, preferences)
        self._delivery = delivery(settings, adapter, tools)

    @classmethod
    def of(
        cls, settings: Sender, adapter: Adapter[M, R], delivery: "type[Delivery[M, R]]" = Delivery
    ) -> "Worker[M, R]":
        """The worker that a function's settings describe; `delivery` is how its channel differs."""
        ledger = Ledger.of(settings, lease=settings.lease_seconds)
        return cls(
            settings,
            adapter,
            ledger=ledger,
            payloads=Payloads(clients.s3(), settings.payload_bucket),
            sqs=clients.sqs(),
            delivery=delivery,
            **_tables_of(settings),
        )

    def handle(self, event: Mapping[str, Any], remaining: Callable[[], int]) -> dict[str, Any]:
        """Work through a batch. `remaining` is Lambda's `get_remaining_time_in_millis`.

        Returns the partial batch response: the records that are not finished.
        """
        self._pace.begin()
        self._delivery.tally.clear()
        self._delivery.waits.clear()
        opened = [(record, self._opened(record, remaining)) for record in event["Records"]]
        self._delivery.begin(each.message for _, each in opened if each and isinstance(each.message, Message))
        waits = {}
        for record, each in opened:
            wait = self._work(each)
            if wait is not None:
                waits[record["messageId"]] = (record["receiptHandle"], wait)
        queues.set_visibility(self._sqs, self._queue_url, list(waits.values()))
        for name, value in self._delivery.tally.items():
            count(name, value)
        for seconds in self._delivery.waits:
            record_duration("PutToAccepted", seconds)
        return {"batchItemFailures": [{"itemIdentifier": each} for each in waits]}

    def _opened(self, record: Mapping[str, Any], remaining: Callable[[], int]) -> Received[M] | None:
        """The record, read; None where it is no message at all."""
        attributes = record["attributes"]
        try:
            item = self._delivery.item_of(decode(record["body"]))
            key_of(item)
            message = self._delivery.read(item)
        except Malformed as fault:
            logger.error("not a message", reason=str(fault), message_id=record["messageId"])
            return None
        receives = int(attributes["ApproximateReceiveCount"])
        return Received(
            item, message, receives, attributes.get("MessageGroupId"), remaining, queues.put_at(record)
        )

    def _work(self, opened: Received[M] | None) -> Wait:
        """One record. Raises nothing: its fault must not end the batch."""
        if opened is None:
            self._delivery.tally["Malformed"] += 1
            return queues.AT_ONCE
        working_on(key_of(opened.item))
        try:
            return self._delivery.deliver(opened)
        except Exception:  # noqa: BLE001 - whatever it is, it is logged and the queue keeps the record
            logger.exception("not delivered; it goes back to the queue")
            self._delivery.tally["Errors"] += 1
            return self._delivery.retry_wait(opened.receives)
        finally:
            working_on(None)


def _tables_of(settings: Sender) -> dict[str, Any]:
    if not isinstance(settings, SuppressingSender):
        return {}
    return {
        "suppressions": Suppressions.of(settings.suppressions_table),
        "preferences": Preferences.of(settings.preferences_table),
    }
