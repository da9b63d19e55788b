"""Wait for a campaign run that an operator has paused, or that cannot be read."""

from collections.abc import Mapping, Sequence

from mailroom.delivery.waiting.reason import Due, Entry, WaitReason
from mailroom.message.message import Key


class HaltedRun(WaitReason):
    """The message's campaign run has the state `name`. `release` lets the message go on as soon as the run
    goes on."""

    def __init__(self, name: str, metric: str) -> None:
        self.name, self.metric = name, metric

    def waits(self, entries: Sequence[Entry], moment: float) -> Mapping[Key, Due]:
        return {entry.record.key: moment for entry in entries if entry.halted == self.name}
