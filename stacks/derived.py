"""Numbers that follow from the settings by the design's rules. All times are in seconds."""

from collections.abc import Iterator
from dataclasses import dataclass

from stacks.settings import Channel, Function, Lane, LaneName, Polling, Redelivery, Settings

DAY = 86_400
SHORTEST_JITTER = 0.5  # a worker waits 50 to 100 % of the nominal wait
SQS_RECEIVES = 1000  # the highest maxReceiveCount
RECEIVES_OVER = SQS_RECEIVES + 1


@dataclass(frozen=True)
class Waits:
    """How long a record waits after each receive that did not finish it: base, 2·base, 4·base … cap."""

    base: int
    cap: int

    def after(self, receive: int) -> int:
        """The nominal wait after receive number `receive`, counted from 1."""
        return min(self.cap, self.base << min(receive - 1, 32))

    def shortest_total(self, receives: int) -> float:
        """The least time between the first and the last of so many receives."""
        return SHORTEST_JITTER * sum(map(self.after, range(1, receives)))

    def receives_to_cover(self, seconds: int) -> int:
        """The fewest receives whose shortest total lasts `seconds`; RECEIVES_OVER where 1000 do not."""
        total, receives = 0.0, 1
        while total < seconds and receives < RECEIVES_OVER:
            total += SHORTEST_JITTER * self.after(receives)
            receives += 1
        return receives


@dataclass(frozen=True)
class QueueRules:
    """What a queue and its mapping are deployed with.

    lease        ├── function time-out ──┼─ margin ─┤          then the next worker may claim
    visibility   ├── 6 x time-out + batch window ───────────┤  then the queue delivers again
    """

    lease: int
    visibility: int
    max_receives: int
    longest_stay: int
    """From the first receive until the dead-letter queue, if every receive waits as long as it can."""


def queue_rules(
    function: Function,
    polling: Polling,
    redelivery: Redelivery,
    lease_margin: int,
    waits: Waits | None = None,
    longest_other: int = 0,
) -> QueueRules:
    """The rules of one queue. Without `waits`, a record that was not finished waits out its visibility.

    `longest_other` is the longest wait that a function sets beside its back-off.
    """
    visibility = 6 * function.timeout_seconds + polling.batch_window_seconds
    waits = waits or Waits(visibility, visibility)
    receives = waits.receives_to_cover(redelivery.longest_throttling_seconds) + redelivery.crash_allowance
    return QueueRules(
        lease=function.timeout_seconds + lease_margin,
        visibility=visibility,
        max_receives=receives,
        # A receive ends in a back-off or in a crash: whichever lasts longer bounds it.
        longest_stay=sum(
            max(waits.after(each), visibility, longest_other) for each in range(1, receives + 1)
        ),
    )


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


def lane_rows(settings: Settings) -> Iterator[LaneRow]:
    """Every lane of every channel."""
    for event_type, channel in settings.channels.items():
        waits = Waits(channel.backoff_seconds, channel.backoff_cap_seconds)
        for lane, polling in channel.lanes.items():
            rules = queue_rules(
                channel, polling, channel, settings.lease_margin_seconds, waits, channel.misconfigured_seconds
            )
            yield LaneRow(event_type, lane, channel, polling, rules)


def scheduled_rules(settings: Settings) -> QueueRules:
    """The rules of the queue that schedules send to."""
    scheduled = settings.scheduled
    return queue_rules(scheduled, scheduled, scheduled, settings.lease_margin_seconds)
