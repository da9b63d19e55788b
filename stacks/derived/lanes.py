"""The lanes of the channels, ready to be made."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from stacks.derived.queues import QueueRules, queue_rules
from stacks.derived.waits import Waits
from stacks.settings import Channel, Lane, LaneName


@dataclass(frozen=True)
class LaneRow:
    """A lane of a channel, ready to be made: its names, its settings and what follows from them."""

    event_type: str
    lane: LaneName
    channel: Channel
    polling: Lane
    rules: QueueRules

    @property
    def queue(self) -> str:
        """The queue's short name: mail, mail-bulk."""
        return self._named(self.event_type)

    @property
    def function(self) -> str:
        """The function's short name: send-mail, send-mail-bulk."""
        return self._named(self.channel.handler.replace("_", "-"))

    @property
    def pace(self) -> float:
        """The gap before each submit: so many workers, each waiting this long, keep to the lane's rate."""
        return self.polling.maximum_concurrency / (self.channel.messages_per_second * self.polling.share)

    def _named(self, base: str) -> str:
        return base if self.lane == "normal" else f"{base}-{self.lane}"


def lane_rows(channels: Mapping[str, Channel], lease_margin: int) -> Iterator[LaneRow]:
    """Every lane of every channel."""
    for event_type, channel in channels.items():
        waits = Waits.of(channel)
        for lane, polling in channel.lanes.items():
            rules = queue_rules(channel, polling, channel, lease_margin, waits, channel.misconfigured_seconds)
            yield LaneRow(event_type, lane, channel, polling, rules)
