"""A dead letter: a message that its queue gave up on, as its dead-letter queue hands it out."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

MAX_ERROR = 200
"""Characters kept of what EventBridge Scheduler says."""


class Letter(Struct, frozen=True):
    """`queue` is the dead-letter queue's short name. `receives` counts every receive that SQS knows of, this
    look among them. `sent_at` is in epoch milliseconds: when it was first enqueued or, on a FIFO queue, when
    it became a dead letter. `undelivered` is why EventBridge Scheduler could not send it; "": SQS moved it.
    """

    queue: str
    message_id: str
    receipt: str
    body: str
    receives: int
    sent_at: int
    undelivered: str = ""


def letter_of(queue: str, message: Mapping[str, Any]) -> Letter:
    """A letter of what ReceiveMessage handed out, with all of its system attributes."""
    attributes = message["Attributes"]
    told = message.get("MessageAttributes", {})
    said = [told[name].get("StringValue", "") for name in ("ERROR_CODE", "ERROR_MESSAGE") if name in told]
    return Letter(
        queue,
        message["MessageId"],
        message["ReceiptHandle"],
        message["Body"],
        int(attributes["ApproximateReceiveCount"]),
        int(attributes["SentTimestamp"]),
        ": ".join(said)[:MAX_ERROR],
    )
