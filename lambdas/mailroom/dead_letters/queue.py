"""Reads dead-letter queues without deleting their messages."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mailroom.aws import queues

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

MAX_ERROR = 200
"""Maximum number of characters of EventBridge Scheduler's error that are used."""

MAX_HELD = 50_000
"""Maximum number of dead letters in one pass. SQS allows 120,000 messages in flight, and each takes half a
kilobyte of memory."""
LONG_POLL_SECONDS = 1
"""Seconds for which a receive waits. Without a wait SQS asks only some of its servers, and an empty response
does not prove that the queue is empty."""
SEEN_AGAIN = 10
"""Maximum number of consecutive receives that return only dead letters which the pass has already received.
Then the pass ends, because SQS may not return the others."""
MARGIN_SECONDS = 30
OF_THE_SCHEDULER = ("ERROR_CODE", "ERROR_MESSAGE")
"""Message attributes in which EventBridge Scheduler reports why it could not send a message."""


class DeadLetter(Struct, frozen=True):
    """A message in a dead-letter queue."""

    queue: str
    """Short name of the dead-letter queue."""
    message_id: str
    receipt: str
    body: str
    receives: int
    """Number of receives in SQS's count, including this one."""
    sent_at: int
    """Time in epoch milliseconds at which the message was first enqueued or, in a FIFO queue, became a dead
    letter."""
    undelivered: str = ""
    """Reason why EventBridge Scheduler could not send the message; empty if SQS has moved the message
    here."""
    message: Mapping[str, Any] = {}
    """Message in the response to ReceiveMessage, unchanged."""


def dead_letter_of(queue: str, message: Mapping[str, Any]) -> DeadLetter:
    """Return the dead letter of an entry from ReceiveMessage with all system attributes.

    If SQS has moved the message, it sets the attribute DeadLetterQueueSourceArn. A message that SQS has
    redriven before keeps the scheduler's error of an earlier failure, which is then not the cause.
    """
    system = message["Attributes"]
    moved = "DeadLetterQueueSourceArn" in system
    attributes = message.get("MessageAttributes", {})
    errors = [attributes[name].get("StringValue", "") for name in OF_THE_SCHEDULER if name in attributes]
    return DeadLetter(
        queue,
        message["MessageId"],
        message["ReceiptHandle"],
        message["Body"],
        int(system["ApproximateReceiveCount"]),
        int(system["SentTimestamp"]),
        "" if moved else ": ".join(errors)[:MAX_ERROR],
        message,
    )


class DeadLetterQueue:
    """Pass through a dead-letter queue. Received dead letters stay hidden until `put_back`, because otherwise
    SQS would return the same ones again instead of the others.

    If the process dies first, they become visible again soon after the function's time-out. In a FIFO queue a
    receive returns up to ten messages of a group and locks the group, so further messages of the group can
    only be received when these ten have left the queue.
    """

    def __init__(self, client: "SQSClient", name: str, url: str, long_poll: int) -> None:
        self._client = client
        self._url = url
        self._long_poll = long_poll
        self._held: dict[str, str] = {}
        self._skipped: set[str] = set()
        """Ids of further dead letters that `receive` does not return, such as redriven ones."""
        self._emptied = False
        self._crowded = False
        self.name = name

    @property
    def seen(self) -> int:
        """Number of dead letters that this pass has received."""
        return len(self._held)

    @property
    def full(self) -> bool:
        """True if the pass cannot hold further dead letters."""
        return len(self._held) >= MAX_HELD

    @property
    def ended(self) -> bool:
        """Whether the last receive was empty. False if the pass was full, ended early, or received the same
        dead letters too often."""
        return self._emptied

    def complete(self) -> bool:
        """Return whether the pass has received all dead letters. In a FIFO queue further messages may be
        locked behind the received ones, so the queue's approximate count is compared as well."""
        return self._emptied and not (self._crowded and self.waiting() > self.seen)

    def waiting(self) -> int:
        """Return the approximate number of dead letters in the queue, including hidden ones."""
        return queues.depth(self._client, self._url)

    def receive(self, seconds_left: float) -> list[DeadLetter]:
        """Return up to ten dead letters that this pass has not received before. The list is empty at the end
        of the pass; `complete` returns whether all dead letters were received.

        `seconds_left` is the function's remaining time: received dead letters stay hidden a little longer
        than that, so that SQS does not return them again during the pass.
        """
        for _ in range(SEEN_AGAIN):
            dead_letters = self._receive(math.ceil(seconds_left) + MARGIN_SECONDS)
            earlier = self._held.keys() | self._skipped
            new = [letter for letter in dead_letters if letter.message_id not in earlier]
            # Only the latest receipt handle of a message is valid.
            self._held |= {letter.message_id: letter.receipt for letter in dead_letters}
            self._emptied = not dead_letters
            if new or not dead_letters:
                return new
        return []

    def _receive(self, hidden_seconds: int) -> list[DeadLetter]:
        response = self._client.receive_message(
            QueueUrl=self._url,
            MaxNumberOfMessages=queues.MAX_ENTRIES,
            VisibilityTimeout=hidden_seconds,
            WaitTimeSeconds=self._long_poll,
            MessageSystemAttributeNames=["All"],
            MessageAttributeNames=["All"],
        )
        dead_letters = [dead_letter_of(self.name, message) for message in response.get("Messages", [])]
        # If a receive returns fewer than ten messages, their groups contain no further ones. If it returns
        # ten, the last group may contain more.
        full = len(dead_letters) == queues.MAX_ENTRIES
        self._crowded = self._crowded or (full and self.name.endswith(".fifo"))
        return dead_letters

    def put_back(self) -> None:
        """Make the received dead letters visible again."""
        queues.set_visibility(self._client, self._url, [(receipt, 0) for receipt in self._held.values()])
