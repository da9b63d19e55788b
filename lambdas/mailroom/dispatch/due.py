"""Messages whose time has come: read back from the mailbox and dispatched."""

import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mailroom.aws import clients, queues
from mailroom.aws.dynamo_batches import batch_get
from mailroom.aws.dynamo_values import string
from mailroom.clock import Clock
from mailroom.dispatch.dispatcher import Dispatcher
from mailroom.environment import DispatchScheduledSettings
from mailroom.errors import Malformed
from mailroom.ledger.ledger import Ledger
from mailroom.mailbox import original
from mailroom.message.message import Held, Key, held, key_of, scheduled
from mailroom.telemetry import about, count, logger

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_sqs import SQSClient

_TAKEN_BACK = "the item was deleted from the mailbox before its send_at"
_LATE_SECONDS = 3600
"""What is read back within it is in time: a million messages of the same minute take 17."""
_GONE = (
    "the item was gone from the mailbox when it was read back, more than 1 hour after its send_at: its ttl "
    "was over, or its producer deleted it; put it under a new id, unless it was taken back"
)


class Mailbox(Struct, frozen=True):
    """Reads items of the mailbox."""

    client: "DynamoDBClient"
    table: str

    def items(self, keys: Iterable[Key]) -> dict[Key, dict[str, Any]]:
        """The items that still exist. Raises UnprocessedKeys where DynamoDB throttles."""
        asked = [{"id": string(key.id), "event_type": string(key.event_type)} for key in dict.fromkeys(keys)]
        found = batch_get(self.client, {self.table: asked}, consistent=True)[self.table]
        return {Key(item["id"], item["event_type"]): item for item in found}


class DueDispatcher(Struct, frozen=True):
    """Works for the queue that schedules write to: each record holds a message's key, or a message with its
    content that waits for its slot of the day."""

    dispatcher: Dispatcher
    mailbox: Mailbox
    ledger: Ledger
    sqs: "SQSClient"
    queue_url: str
    clock: Clock = time.time

    @classmethod
    def of(cls, settings: DispatchScheduledSettings) -> "DueDispatcher":
        """What a function's settings describe."""
        mailbox = Mailbox(clients.dynamodb(), settings.mailbox_table)
        return cls(Dispatcher.of(settings), mailbox, Ledger.of(settings), clients.sqs(), settings.queue_url)

    def handle(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """One batch; the records that must come back.

        An item that is gone when its time comes was taken back: cancelled. If its time was long ago, it may
        have been there then: failed, because a delay of ours must not read as its producer's wish. An item
        whose `send_at` was moved on waits again.
        """
        keys: dict[str, Key] = {}
        waiting: list[tuple[str, Held]] = []
        malformed: dict[str, tuple[str, float]] = {}
        for record in event["Records"]:
            try:
                body = scheduled(record["body"])
                if (message := held(body)) is not None:
                    waiting.append((record["messageId"], message))
                else:
                    keys[record["messageId"]] = key_of(body)
            except Malformed as fault:
                logger.error("not a key", reason=str(fault), message_id=record["messageId"])
                malformed[record["messageId"]] = (record["receiptHandle"], queues.AT_ONCE)
        queues.set_visibility(self.sqs, self.queue_url, list(malformed.values()))
        items = self.mailbox.items(keys.values())
        # A schedule stands for a message that was never queued, also if its item was lost and put back.
        due = [(reference, original(items[key])) for reference, key in keys.items() if key in items]
        failed = malformed.keys() | self.dispatcher.dispatch(due)
        failed |= self.dispatcher.dispatch_held(waiting, self.queue_url)
        for key in dict.fromkeys(keys.values()):
            if key not in items:
                self._gone(key)
        return {"batchItemFailures": [{"itemIdentifier": each} for each in sorted(failed)]}

    def _gone(self, key: Key) -> None:
        if self.ledger.cancel(key, _TAKEN_BACK, since=self.clock() - _LATE_SECONDS):
            logger.info("cancelled", extra=about(key))
            count("Cancelled")
        elif self.ledger.lose(key, _GONE):
            logger.error("its content is gone", extra=about(key))
