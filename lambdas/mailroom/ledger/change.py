"""Changes of ledger items, read from the records of the table's DynamoDB stream."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from mailroom.aws.dynamo_values import plain
from mailroom.clock import epoch
from mailroom.message.message import Key


class LedgerChange(Struct, frozen=True):
    """A change of a ledger item. Both images of the item are decoded from DynamoDB's types to plain
    Python."""

    old: Mapping[str, Any]
    """Image before the change; {} if the item is new."""
    new: Mapping[str, Any]
    """Image after the change."""

    @property
    def key(self) -> Key:
        return Key(self.new["id"], self.new["event_type"])

    @property
    def status(self) -> str:
        return str(self.new.get("status", ""))

    @property
    def attempts(self) -> int:
        """Number of attempts that have ended."""
        return int(self.new.get("attempts", 0))

    @property
    def generation(self) -> int:
        """Number of times that the message was reopened."""
        return int(self.new.get("generation", 0))

    @property
    def at(self) -> float:
        """Time of the change in epoch seconds. If the stream delivers the record twice, the time is the
        same."""
        return epoch(self.new["updatedAt"])

    @property
    def moved(self) -> bool:
        """Whether the change gave the message another status. If a message ends twice with the same status,
        its status was `sending` in between, because every attempt begins with a claim."""
        return self.new.get("status") != self.old.get("status")

    @property
    def reopened(self) -> bool:
        """Whether the change is an operator's resend of a message that had ended. A resend is not an
        outcome."""
        return int(self.old.get("generation", 0)) != self.generation


def change_of(record: Mapping[str, Any]) -> LedgerChange | None:
    """Return the change in a stream record. Returns None if the item was deleted, because a deletion is not
    an outcome."""
    images = record["dynamodb"]
    if record["eventName"] == "REMOVE" or "NewImage" not in images:
        return None
    return LedgerChange(plain(images.get("OldImage", {})), plain(images["NewImage"]))
