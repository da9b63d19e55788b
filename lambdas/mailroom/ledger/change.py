"""One change of a ledger item, as its table's stream tells of it: what was, and what is."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from mailroom.aws.dynamo import plain
from mailroom.clock import epoch
from mailroom.message.message import Key


class LedgerChange(Struct, frozen=True):
    """The item before ({}: it is new) and after, in plain Python."""

    old: Mapping[str, Any]
    new: Mapping[str, Any]

    @property
    def key(self) -> Key:
        """The message's."""
        return Key(self.new["id"], self.new["event_type"])

    @property
    def status(self) -> str:
        """Where it stands now."""
        return str(self.new.get("status", ""))

    @property
    def attempts(self) -> int:
        """Attempts that have ended."""
        return int(self.new.get("attempts", 0))

    @property
    def generation(self) -> int:
        """How often it was reopened."""
        return int(self.new.get("generation", 0))

    @property
    def at(self) -> float:
        """When, in epoch seconds: the same however often the stream tells of it."""
        return epoch(self.new["updatedAt"])

    @property
    def moved(self) -> bool:
        """Whether its status is another than before. A claim always stands between two that are the same."""
        return self.new.get("status") != self.old.get("status")

    @property
    def reopened(self) -> bool:
        """Whether it was resent by hand: that begins a life, and is no outcome of one."""
        return int(self.old.get("generation", 0)) != self.generation


def change_of(record: Mapping[str, Any]) -> LedgerChange | None:
    """The change in a stream's record; None where an item went, which is no outcome."""
    images = record["dynamodb"]
    if record["eventName"] == "REMOVE" or "NewImage" not in images:
        return None
    return LedgerChange(plain(images.get("OldImage", {})), plain(images["NewImage"]))
