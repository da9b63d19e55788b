"""One queue of the emulator, as the poller sees it."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from local.pump.fifo_mapping import Message
from local.pump.functions import TROUBLE
from local.pump.insist import TROUBLE_SECONDS, insist

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

WAIT_SECONDS = 20
MAX_BATCH = 10


class EmulatedQueue:
    """`arn` names the queue; it must exist."""

    def __init__(self, client: "SQSClient", arn: str) -> None:
        self._client = client
        self._arn = arn
        self._url = client.get_queue_url(QueueName=arn.rpartition(":")[2])["QueueUrl"]

    def receive(self, count: int) -> list[Message]:
        """At most so many messages (10 by any count); waits for the first. Empty after a failed call."""
        try:
            reply = self._client.receive_message(
                QueueUrl=self._url,
                MaxNumberOfMessages=min(count, MAX_BATCH),
                WaitTimeSeconds=WAIT_SECONDS,
                AttributeNames=["All"],
                MessageAttributeNames=["All"],
            )
        except TROUBLE as trouble:  # the emulator may be stopping
            print(f"receiving from {self._arn} again: {trouble}", flush=True)
            time.sleep(TROUBLE_SECONDS)
            return []
        return [Message.received(entry, self._arn) for entry in reply.get("Messages", [])]

    def delete(self, messages: Sequence[Message]) -> None:
        """Delete; a message that was received again since stays, as on AWS."""
        for message in messages:
            insist(lambda message=message: self._delete(message))  # type: ignore[misc]

    def _delete(self, message: Message) -> None:
        try:
            self._client.delete_message(QueueUrl=self._url, ReceiptHandle=message.receipt)
        except self._client.exceptions.ReceiptHandleIsInvalid:
            print(f"{message.id} was not deleted: its visibility time-out had ended", flush=True)
