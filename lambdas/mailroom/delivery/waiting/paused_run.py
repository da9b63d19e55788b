"""Wait for a campaign run that an operator has paused."""

from collections.abc import Mapping, Sequence

from mailroom.delivery.waiting.reason import Due, Entry, WaitReason
from mailroom.ledger.items import PAUSED
from mailroom.message.message import Key


class PausedRun(WaitReason):
    """The message's campaign run is paused. `release` lets the message go on after the pause."""

    name, metric = PAUSED, "WaitsForRun"

    def waits(self, entries: Sequence[Entry], moment: float) -> Mapping[Key, Due]:
        return {entry.record.key: moment for entry in entries if entry.halted == PAUSED}
