"""One dead-letter queue: looked through without taking anything out of it."""

import math
from typing import TYPE_CHECKING, Any

from mailroom import queues
from mailroom.dead_letter import Letter, letter_of

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

MAX_HELD = 50_000
"""Letters of one pass: SQS hands out none beyond 120,000 in flight, and each takes half a kilobyte."""
LONG_POLL_SECONDS = 1
"""Without a wait SQS asks a few of its servers alone, and an empty answer proves nothing."""
_MARGIN_SECONDS = 30
_SCHEDULERS = ("ERROR_CODE", "ERROR_MESSAGE")
"""Attributes of what EventBridge Scheduler could not send."""


class DeadLetterQueue:
    """A pass through a queue. What it hands out stays hidden until `put_back`, or else the same few letters
    would come again and again and those behind them never.

    A letter that nobody puts back, because the process died, comes back by itself soon after the function's
    own end. Of a FIFO queue's group one receive returns up to ten, and none behind them comes: a group is
    locked while any of it is held, so the others are seen once those ten are gone.
    """

    def __init__(self, client: "SQSClient", name: str, url: str, long_poll: int) -> None:
        self._client = client
        self._url = url
        self._long_poll = long_poll
        self._held: dict[str, str] = {}
        self.name = name

    @property
    def seen(self) -> int:
        """Letters that this pass has received."""
        return len(self._held)

    @property
    def full(self) -> bool:
        """Whether a pass can hold no more."""
        return len(self._held) >= MAX_HELD

    def waiting(self) -> int:
        """About how many letters lie there, hidden ones among them."""
        asked: Any = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")
        reply = self._client.get_queue_attributes(QueueUrl=self._url, AttributeNames=asked)
        return sum(int(value) for value in reply["Attributes"].values())

    def receive(self, seconds_left: float) -> list[Letter]:
        """Up to ten letters that this pass has not seen; [] ends it.

        `seconds_left` is how long the function can still run: letters stay hidden a little longer, so that
        none can be redriven while it is looked at.
        """
        reply = self._client.receive_message(
            QueueUrl=self._url,
            MaxNumberOfMessages=queues.MAX_ENTRIES,
            VisibilityTimeout=math.ceil(seconds_left) + _MARGIN_SECONDS,
            WaitTimeSeconds=self._long_poll,
            MessageSystemAttributeNames=["All"],
            MessageAttributeNames=[*_SCHEDULERS],
        )
        letters = [letter_of(self.name, each) for each in reply.get("Messages", [])]
        new = [each for each in letters if each.message_id not in self._held]
        for each in letters:
            self._held[each.message_id] = each.receipt  # the last receipt is the one that counts
        return new

    def put_back(self) -> None:
        """All that was received is there for everybody again."""
        queues.set_visibility(self._client, self._url, [(receipt, 0) for receipt in self._held.values()])
