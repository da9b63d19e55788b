"""Messages of the load, and their expected outcomes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

Item = dict[str, Any]
Key = tuple[str, str]
"""Id and event_type of a message."""
Notice = tuple[str, str]
"""Status of a callback, and the beginning of its message."""
CALLBACKS, MESSAGES = "callbacks", "messages"
"""Kinds of requests to the webhook receiver, which are in their paths before the message's id."""
TITLES = {"mail": "Mail", "sms": "SMS", "push": "Push"}
SENTENCES = {
    "sent": "{title} sent successfully",
    "delivered": "{title} delivered",
    "bounced": "{title} bounced",
    "undelivered": "{title} could not be delivered",
    "failed": "Failed to send {channel}: ",
}
ENDS = {"mail": "delivered", "sms": "delivered", "push": "sent", "fax": "delivered", "webhook": "sent"}
"""Final status of a message without faults, by channel."""


@dataclass(frozen=True)
class Expected:
    """A mailbox item and its expected outcome.

    `reason` is empty if the message must be sent, or else a word of the ledger's error message. `ends` is the
    final status if it is not the usual one. `facts` are attributes that the ledger item must have,
    `recipients` the statuses of several recipients, and `callbacks` the callbacks in order. `failing` is the
    number of tries that a provider accepts and that fail later, before the try that succeeds.
    """

    item: Item
    reason: str = ""
    ends: str = ""
    facts: Mapping[str, object] = field(default_factory=dict)
    recipients: Mapping[str, str] = field(default_factory=dict)
    callbacks: Sequence[Notice] = ()
    failing: int = 0

    @property
    def id(self) -> str:
        return str(self.item["id"])

    @property
    def channel(self) -> str:
        return str(self.item["event_type"])

    @property
    def key(self) -> Key:
        return self.id, self.channel

    @property
    def status(self) -> str:
        return self.ends or ("failed" if self.reason else ENDS[self.channel])

    @property
    def submits(self) -> int:
        """Number of submits that a provider must have accepted."""
        return self.failing + (not self.reason)

    @property
    def address(self) -> str:
        """Address of the message in the provider's form, or an empty string if it is missing."""
        to = self.item.get("email") or self.item.get("to") or ""
        return ", ".join(to) if isinstance(to, list) else str(to)


def with_callback(message: Expected, providers: str) -> Expected:
    """Return a mail, SMS or push message with callbacks to the receiver about its sending and its final
    status. `providers` is the simulators' URL."""
    statuses = ["sent"] if not message.reason and message.status != "sent" else []
    words = {"channel": message.channel, "title": TITLES[message.channel]}
    return replace(
        message,
        item=message.item | {"callback_url": f"{providers}/receiver/ok/{CALLBACKS}/{message.id}"},
        callbacks=[(status, SENTENCES[status].format(**words)) for status in (*statuses, message.status)],
    )
