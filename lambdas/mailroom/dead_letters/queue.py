"""Reads of a dead-letter queue that leave its messages there."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mailroom.aws import queues

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

MAX_ERROR = 200
"""Maximum number of characters kept of an error of EventBridge Scheduler."""

MAX_HELD = 50_000
"""Maximum number of dead letters in one pass: SQS allows 120,000 in flight, and each takes half a
kilobyte."""
LONG_POLL_SECONDS = 1
"""Seconds for which a receive waits. Without a wait SQS asks only some of its servers, and an empty response
does not prove that the queue is empty."""
SEEN_AGAIN = 10
"""Maximum number of receives in a row that return only dead letters which the pass has seen: those behind
them may be out of reach."""
_MARGIN_SECONDS = 30
OF_THE_SCHEDULER = ("ERROR_CODE", "ERROR_MESSAGE")
"""Attributes in which EventBridge Scheduler reports why it could not send a message."""


class DeadLetter(Struct, frozen=True):
    """A message in a dead-letter queue."""

    queue: str
    """Short name of the dead-letter queue."""
    message_id: str
    receipt: str
    body: str
    receives: int
    """Number of all receives that SQS knows of, including this one."""
    sent_at: int
    """Time in epoch milliseconds at which it was first enqueued or, on a FIFO queue, became a dead letter."""
    undelivered: str = ""
    """Reason why EventBridge Scheduler could not send it; empty if SQS moved it."""
    message: Mapping[str, Any] = {}
    """Entry of the response to ReceiveMessage."""


def dead_letter_of(queue: str, message: Mapping[str, Any]) -> DeadLetter:
    """Return the dead letter of an entry from ReceiveMessage with all system attributes.

    SQS names the queue from which it moved a dead letter. Scheduler's error of an earlier death stays on a
    message that SQS's own task has redriven, and then is not the cause any more.
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
    """A pass through a queue. Received dead letters stay hidden until `put_back`; otherwise SQS would return
    the same few again and again, and never those behind them.

    If the process dies first, they become visible again soon after the function's own end. On a FIFO queue a
    receive returns up to ten of a group and locks the group, so those behind them are seen once the ten are
    gone.
    """

    def __init__(self, client: "SQSClient", name: str, url: str, long_poll: int) -> None:
        self._client = client
        self._url = url
        self._long_poll = long_poll
        self._held: dict[str, str] = {}
        self._skipped: set[str] = set()
        """Ids of further dead letters that this pass does not return."""
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
        """True if the last receive was empty; False if the pass was full, was left early, or received too
        many dead letters a second time."""
        return self._emptied

    def complete(self) -> bool:
        """Return whether the pass has ended, and no dead letter of a FIFO queue is locked behind those it
        holds, which only the queue's count shows. The count leaves out what other processes hold."""
        return self._emptied and not (self._crowded and self.waiting() > self.seen)

    def waiting(self) -> int:
        """Return the approximate number of dead letters in the queue, including hidden ones."""
        return queues.depth(self._client, self._url)

    def receive(self, seconds_left: float) -> list[DeadLetter]:
        """Receive up to ten dead letters that this pass has not seen. An empty list ends the pass, and
        `complete` returns whether it was the queue's end.

        `seconds_left` is the function's remaining time: received dead letters stay hidden a little longer, so
        that they are not redriven during the pass.
        """
        for _ in range(SEEN_AGAIN):
            dead_letters = self._receive(math.ceil(seconds_left) + _MARGIN_SECONDS)
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
        # Fewer than ten messages are all messages of their groups. If there are ten, the last group may have
        # more.
        full = len(dead_letters) == queues.MAX_ENTRIES
        self._crowded = self._crowded or (full and self.name.endswith(".fifo"))
        return dead_letters

    def put_back(self) -> None:
        """Make the received dead letters visible again."""
        queues.set_visibility(self._client, self._url, [(receipt, 0) for receipt in self._held.values()])
