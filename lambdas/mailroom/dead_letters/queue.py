"""One dead-letter queue: looked through without taking anything out of it."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mailroom.aws import queues

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

MAX_ERROR = 200
"""Characters kept of what EventBridge Scheduler says."""

MAX_HELD = 50_000
"""Dead letters of one pass: SQS hands out none beyond 120,000 in flight, and each takes half a kilobyte."""
LONG_POLL_SECONDS = 1
"""Without a wait SQS asks only some of its servers, and an empty answer proves nothing."""
SEEN_AGAIN = 10
"""Receives in a row that bring only what the pass has seen: what lies behind may be out of reach."""
_MARGIN_SECONDS = 30
OF_THE_SCHEDULER = ("ERROR_CODE", "ERROR_MESSAGE")
"""Attributes by which EventBridge Scheduler says why it could not send a dead letter."""


class DeadLetter(Struct, frozen=True):
    """`queue` is the dead-letter queue's short name. `receives` counts every receive that SQS knows of, this
    look among them. `sent_at` is in epoch milliseconds: when it was first enqueued or, on a FIFO queue, when
    it became a dead letter. `undelivered` is why EventBridge Scheduler could not send it; "": SQS moved it.
    `message` is all that SQS handed out.
    """

    queue: str
    message_id: str
    receipt: str
    body: str
    receives: int
    sent_at: int
    undelivered: str = ""
    message: Mapping[str, Any] = {}


def dead_letter_of(queue: str, message: Mapping[str, Any]) -> DeadLetter:
    """What ReceiveMessage handed out, with all of its system attributes.

    SQS names the queue that it moved a dead letter from. What EventBridge Scheduler said of an earlier death
    goes along when SQS's own task redrives it, and then explains nothing any more.
    """
    attributes = message["Attributes"]
    moved = "DeadLetterQueueSourceArn" in attributes
    said = message.get("MessageAttributes", {})
    errors = [said[name].get("StringValue", "") for name in OF_THE_SCHEDULER if name in said]
    return DeadLetter(
        queue,
        message["MessageId"],
        message["ReceiptHandle"],
        message["Body"],
        int(attributes["ApproximateReceiveCount"]),
        int(attributes["SentTimestamp"]),
        "" if moved else ": ".join(errors)[:MAX_ERROR],
        message,
    )


class DeadLetterQueue:
    """A pass through a queue. What it hands out stays hidden until `put_back`: else the same few would come
    again and again, and those behind them never.

    What nobody puts back, because the process died, comes back by itself soon after the function's own end.
    Of a FIFO queue's group one receive returns up to ten and locks the group, so those behind them are seen
    once the ten are gone.
    """

    def __init__(self, client: "SQSClient", name: str, url: str, long_poll: int) -> None:
        self._client = client
        self._url = url
        self._long_poll = long_poll
        self._held: dict[str, str] = {}
        self._skipped: set[str] = set()
        """The ids of others that this pass does not hand out."""
        self._emptied = False
        self._crowded = False
        self.name = name

    @property
    def seen(self) -> int:
        """Dead letters that this pass has received."""
        return len(self._held)

    @property
    def full(self) -> bool:
        """Whether a pass can hold no more."""
        return len(self._held) >= MAX_HELD

    @property
    def ended(self) -> bool:
        """Whether nothing was left to be handed out. Not so where a pass was full, was left early, or met too
        many dead letters a second time."""
        return self._emptied

    def complete(self) -> bool:
        """Whether it has ended, and nothing is locked behind what it holds of a FIFO queue: only the queue's
        count can tell. What others hold is not counted here."""
        return self._emptied and not (self._crowded and self.waiting() > self.seen)

    def waiting(self) -> int:
        """About how many dead letters lie there, hidden ones among them."""
        return queues.depth(self._client, self._url)

    def receive(self, seconds_left: float) -> list[DeadLetter]:
        """Up to ten that this pass has not seen; [] ends it, and `complete` says whether that was the queue's
        end.

        `seconds_left` is how long the function can still run: what is received stays hidden a little longer,
        so that nothing is redriven while it is looked at.
        """
        for _ in range(SEEN_AGAIN):
            dead_letters = self._receive(math.ceil(seconds_left) + _MARGIN_SECONDS)
            known = self._held.keys() | self._skipped
            new = [each for each in dead_letters if each.message_id not in known]
            for each in dead_letters:
                self._held[each.message_id] = each.receipt  # the last receipt is the one that counts
            self._emptied = not dead_letters
            if new or not dead_letters:
                return new
        return []

    def _receive(self, hidden_seconds: int) -> list[DeadLetter]:
        reply = self._client.receive_message(
            QueueUrl=self._url,
            MaxNumberOfMessages=queues.MAX_ENTRIES,
            VisibilityTimeout=hidden_seconds,
            WaitTimeSeconds=self._long_poll,
            MessageSystemAttributeNames=["All"],
            MessageAttributeNames=["All"],
        )
        dead_letters = [dead_letter_of(self.name, each) for each in reply.get("Messages", [])]
        # Less than it may return is all of the groups that it took from; of ten the last may have more.
        full = len(dead_letters) == queues.MAX_ENTRIES
        self._crowded = self._crowded or (full and self.name.endswith(".fifo"))
        return dead_letters

    def put_back(self) -> None:
        """Make all that was received visible to everybody again."""
        queues.set_visibility(self._client, self._url, [(receipt, 0) for receipt in self._held.values()])
