"""Messages of the load, and their expected outcomes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

Item = dict[str, Any]
Key = tuple[str, str]
"""A message's id and event_type."""
Notice = tuple[str, str]
"""A callback's status, and how its message starts."""
CALLBACKS, MESSAGES = "callbacks", "messages"
"""The kinds of requests to the webhook receiver: in their paths, before the message's id."""
TITLES = {"mail": "Mail", "sms": "SMS", "push": "Push"}
SENTENCES = {
    "sent": "{title} sent successfully",
    "delivered": "{title} delivered",
    "bounced": "{title} bounced",
    "undelivered": "{title} could not be delivered",
    "failed": "Failed to send {channel}: ",
}
ENDS = {"mail": "delivered", "sms": "delivered", "push": "sent", "fax": "sent", "webhook": "sent"}
"""The final status of a good message, by channel."""


@dataclass(frozen=True)
class Expected:
    """A mailbox item and what must become of it.

    `reason` is empty if the message is to be sent, else a word of the ledger's error message; `ends` is the
    final status, if it is not the usual one. `facts` are attributes that the ledger item must have,
    `recipients` the status of each of several, `callbacks` must come in this order. A provider accepts
    `failing` tries that fail later, before the one that succeeds."""

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
        """How many submits a provider must have accepted."""
        return self.failing + (not self.reason)

    @property
    def address(self) -> str:
        """Address of the message in the provider's form; empty if the address is missing."""
        to = self.item.get("email") or self.item.get("to") or ""
        return ", ".join(to) if isinstance(to, list) else str(to)


def with_callback(message: Expected, providers: str) -> Expected:
    """A mail, SMS or push that tells the receiver that it was sent, and how it ended. `providers` is the
    simulators' URL."""
    statuses = ["sent"] if not message.reason and message.status != "sent" else []
    words = {"channel": message.channel, "title": TITLES[message.channel]}
    return replace(
        message,
        item=message.item | {"callback_url": f"{providers}/receiver/ok/{CALLBACKS}/{message.id}"},
        callbacks=[(status, SENTENCES[status].format(**words)) for status in (*statuses, message.status)],
    )
