"""What the demo sends, and what must become of each message."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from local.demo.client import Item, Key

Notice = tuple[str, str]
"""A callback's status, and how its message starts."""
CALLBACKS, MESSAGES = "callbacks", "messages"
"""The kinds of requests to the webhook receiver: in their paths, before the message's id."""


@dataclass(frozen=True)
class Scenario:
    """A mailbox item and what must become of it. `reason` is empty if the message is to be sent, else a word
    of the ledger's error message; `ends` is its final status. `facts` are attributes that its ledger item
    must have, `recipients` the status of each of several."""

    item: Item
    reason: str = ""
    ends: str = ""
    facts: Mapping[str, object] = field(default_factory=dict)
    recipients: Mapping[str, str] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return str(self.item["id"])

    @property
    def key(self) -> Key:
        return self.item["id"], self.item["event_type"]

    @property
    def status(self) -> str:
        """The final status: a good mail is delivered."""
        return self.ends or ("failed" if self.reason else "delivered")

    @property
    def address(self) -> str:
        """Where the message goes, as the inbox writes it; empty if it has no address."""
        to = self.item.get("email") or self.item.get("to") or ""
        return ", ".join(to) if isinstance(to, list) else str(to)
