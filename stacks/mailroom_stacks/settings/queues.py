"""Queues: how long a record waits, how often it is received, how long it is kept; and what follows from that.
All times are in seconds."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from mailroom.delivery.backoff import backoff
from mailroom.ledger.reader import REMEMBERED_SECONDS
from mailroom_stacks.settings.sections import Backoff, Function, QueueWorker, Redelivery, Section, fixed


class Release(Function):
    """The function that hands over what waited, each minute for each part of it."""

    timeout_seconds: int = fixed(60)
    memory_mb: int = Field(default=512, ge=256, le=1769)
    """Memory, and with it the CPU: how fast what is due in one minute gets into its queues."""


class Stream(Function):
    """How a table's stream is read: the mailbox's by dispatch, the ledger's by outcomes."""

    enabled: bool = fixed(True)
    """Whether Lambda reads the stream; the local stage's pump does it there."""
    batch_size: int = fixed(100)
    batch_window_seconds: int = fixed(0)
    retries: int = fixed(10)
    maximum_record_age_seconds: int = fixed(21_600)
    """A stream keeps its records for a day."""
    parallelization: int = Field(default=2, ge=1, le=10)
    """How many batches of one shard of the stream are read side by side."""


LEAST_LEDGER_DAYS = REMEMBERED_SECONDS // 86_400
"""The days that every ledger remembers, whatever its stage is set to or was: an item lives by the setting
that held when it was written, so that nobody can tell from today's what is forgotten."""


UNPROCESSED_DAYS = 30
"""For how long the bucket keeps what a stream gave up on. Far less than every ledger remembers, or a replay
may send again what the ledger has forgotten; and no longer than an erasure may leave to its end."""


class Retention(Section):
    """How long things are kept."""

    queue_days: int = Field(default=4, ge=4, le=13)
    """How long a queue keeps a message (the fax queue: 14 days). A dead letter's age counts from its first
    enqueue, and it lives for 14 days in all."""
    dead_letter_days: int = fixed(14)
    """SQS keeps none for longer."""
    margin_days: int = fixed(1)
    """Added to what is derived: the time that a message may wait behind others before its first receive."""
    ledger_days: int = Field(default=LEAST_LEDGER_DAYS, ge=LEAST_LEDGER_DAYS, le=3650)
    """How long the ledger remembers an id after the message's last change. Items already written keep their
    time."""
    mailbox_days: int | None = Field(default=None, ge=1, le=3650)
    """The `ttl` that the API, campaigns and imports give items, counted from `send_at`; null keeps items for
    ever. The least is queue, dead-letter queue and a day together. With 80 or less no item outlives what the
    ledger knows of it."""
    payload_days: int = Field(default=90, ge=1, le=3650)
    """How long the payload bucket keeps an object."""
    log_days: Literal[1, 7, 14, 30, 90, 180, 365] = 30
    """How long logs are kept."""

    def days_of(self, *, fifo: bool) -> int:
        """How long a queue keeps a message. A FIFO queue's may wait behind others for long, and its age
        starts anew in its dead-letter queue: it keeps as long as that."""
        return self.dead_letter_days if fifo else self.queue_days


DAY = 86_400
SQS_RECEIVES = 1000  # the highest maxReceiveCount
RECEIVES_OVER = SQS_RECEIVES + 1


@dataclass(frozen=True)
class Waits:
    """How long a record waits after each receive that did not finish it: base, 2·base, 4·base … cap."""

    base: int
    cap: int

    @classmethod
    def of(cls, section: Backoff) -> "Waits":
        """The waits that a section sets."""
        return cls(section.backoff_seconds, section.backoff_cap_seconds)

    def after(self, receive: int) -> int:
        """The longest wait after receive number `receive`, counted from 1."""
        return int(backoff(receive, self.base, self.cap, lambda: 1.0))

    def shortest_after(self, receive: int) -> float:
        """The shortest wait after receive number `receive`."""
        return backoff(receive, self.base, self.cap, lambda: 0.0)

    def receives_to_cover(self, seconds: int) -> int:
        """The fewest receives whose shortest total lasts `seconds`; RECEIVES_OVER where 1000 do not."""
        total, receives = 0.0, 1
        while total < seconds and receives < RECEIVES_OVER:
            total += self.shortest_after(receives)
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
    """Seconds from the first receive until the dead-letter queue, if every receive waits as long as it
    can."""


def visibility_of(function: Function, window: int) -> int:
    """AWS's advice for a queue that a function reads: room for throttled invocations. `window` is the batch
    window in seconds."""
    return 6 * function.timeout_seconds + window


def queue_rules(
    section: Redelivery,
    lease_margin: int,
    window: int = 0,
    waits: Waits | None = None,
    longest_other: int = 0,
) -> QueueRules:
    """The rules of one queue. Without `waits`, a record that was not finished waits out its visibility.

    `longest_other` is the longest wait that a function sets beside its back-off.
    """
    visibility = visibility_of(section, window)
    waits = waits or Waits(visibility, visibility)
    receives = waits.receives_to_cover(section.longest_throttling_seconds) + section.crash_allowance
    return QueueRules(
        lease=section.timeout_seconds + lease_margin,
        visibility=visibility,
        max_receives=receives,
        longest_stay=longest_stay(waits, receives, max(visibility, longest_other)),
    )


def longest_stay(waits: Waits, receives: int, at_least: int) -> int:
    """A receive ends in a back-off or in a crash: whichever lasts longer bounds it."""
    return sum(max(waits.after(each), at_least) for each in range(1, receives + 1))


def worker_rules(section: QueueWorker, lease_margin: int) -> QueueRules:
    """The rules of a queue whose section says everything."""
    return queue_rules(section, lease_margin, section.batch_window_seconds)


@dataclass(frozen=True)
class RetrySetting:
    """The setting of a section that the number of receives follows from, with its formula and remedy."""

    setting: str = "longest_throttling_seconds"
    formula: str = "as many as cover it when each wait is at its shortest, plus crash_allowance"
    remedy: str = "lower it"


def queue_faults(
    key: str, function: Function, rules: QueueRules, keep: Retention, retry: RetrySetting | None = None
) -> Iterator[str]:
    """Rules of the queue that `key` describes."""
    retry = retry or RetrySetting()
    timeout = function.timeout_seconds
    margin = rules.lease - timeout
    most_seconds = (keep.queue_days - keep.margin_days) * DAY
    if rules.lease >= rules.visibility:
        enough = timeout + 1 + (rules.lease - rules.visibility) // 5
        yield (
            f"{key}.timeout_seconds: {timeout} gives a lease of {rules.lease} s (time-out + {margin}), "
            f"which must end before the visibility time-out of {rules.visibility} s "
            f"(6 x time-out + batch window); use {enough} or more."
        )
    if rules.max_receives > SQS_RECEIVES:
        count = f"over {SQS_RECEIVES}" if rules.max_receives >= RECEIVES_OVER else str(rules.max_receives)
        yield (
            f"{key}.{retry.setting}: takes {count} receives ({retry.formula}), and SQS allows "
            f"{SQS_RECEIVES}; {retry.remedy}."
        )
    elif rules.longest_stay > most_seconds:
        yield (
            f"{key}.{retry.setting}: gives {rules.max_receives} receives, which may take "
            f"{rules.longest_stay} s (the longest wait or visibility after each), and SQS deletes silently "
            f"what is older than {keep.queue_days} days; they may take {most_seconds} s, a day less; "
            "lower it."
        )


def retention_faults(keep: Retention, *, fax: bool) -> Iterator[str]:
    """Rules of the section `retention`; `fax`: the stage has the fax queue, which is FIFO."""
    in_queue = keep.days_of(fifo=fax)
    need = in_queue + keep.dead_letter_days + keep.margin_days
    queue = "of the fax queue, as dead_letter_days," if fax else "queue_days"
    remedy = (
        f"of a message that can still be redelivered; use {need} or more ({queue} {in_queue} + "
        f"dead_letter_days {keep.dead_letter_days} + margin_days {keep.margin_days})"
    )
    if keep.mailbox_days is not None and keep.mailbox_days < need:
        yield f"retention.mailbox_days: {keep.mailbox_days} would lose the item {remedy}, or null."
    if keep.payload_days < need:
        yield f"retention.payload_days: {keep.payload_days} would lose the content {remedy}."
