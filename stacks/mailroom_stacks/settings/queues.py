"""Rules of queues: waits, number of receives and retention, with the numbers derived from them. All times are
in seconds."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from mailroom.delivery.backoff import backoff
from mailroom.ledger.status_reader import REMEMBERED_SECONDS
from mailroom_stacks.settings.sections import Section
from mailroom_stacks.settings.times import Times


class Release(Section):
    """Function that hands over waiting messages, each minute for each part of them."""

    memory_mb: int = Field(default=512, ge=256, le=1769)
    """Memory in MiB, and with it the CPU: the speed at which due messages get into their queues."""


class Stream(Section):
    """Reader of a table's stream: dispatch for the mailbox, outcomes for the ledger."""

    parallelization: int = Field(default=2, ge=1, le=10)
    """Batches of one shard of the stream that are read side by side."""


LEAST_LEDGER_DAYS = REMEMBERED_SECONDS // 86_400
"""Days that every ledger remembers, whatever the setting is or was: an item keeps the time of the setting at
its last write, so today's setting does not show what is forgotten."""


UNPROCESSED_DAYS = 30
"""Days for which the bucket keeps given-up records of streams. Far fewer than every ledger remembers, or a
replay may send again what the ledger has forgotten; and no more than an erasure may take to its end."""


DEAD_LETTER_DAYS = 14
"""Days that a dead-letter queue keeps a message, SQS's maximum."""
MARGIN_DAYS = 1
"""Days added to what is derived: a message may wait behind others before its first receive."""


class Retention(Section):
    """Times for which data is kept."""

    queue_days: int = Field(default=4, ge=4, le=13)
    """Days that a queue keeps a message (the fax queue: 14 days). A dead letter's age counts from its first
    enqueue, and it lives for 14 days in all."""
    ledger_days: int = Field(default=LEAST_LEDGER_DAYS, ge=LEAST_LEDGER_DAYS, le=3650)
    """Days that the ledger remembers a message after its last change. Items already written keep their
    time."""
    mailbox_days: int | None = Field(default=None, ge=1, le=3650)
    """Days until the `ttl` that the API, campaigns and imports give items, counted from `send_at`; null keeps
    items for ever. With 80 or less no item outlives its message's entry in the ledger."""
    payload_days: int = Field(default=90, ge=1, le=3650)
    """Days that the payload bucket keeps an object."""
    log_days: Literal[1, 7, 14, 30, 90, 180, 365] = 30
    """Days that logs are kept."""

    def days_of(self, *, fifo: bool) -> int:
        """Return the days that a queue keeps a message. A message of a FIFO queue may wait behind others for
        long, and its age starts anew in its dead-letter queue: the queue keeps it as long as that."""
        return DEAD_LETTER_DAYS if fifo else self.queue_days


DAY = 86_400
RESEND_DELAYS = (0, 1_800, 7_200)
"""Seconds after a try of unknown outcome until `on_unknown` "resend" sends again, which happens only after
the try's lease; after the last one the message becomes a dead letter. A wait is a visibility time-out, of
which SQS allows 12 hours."""
CRASH_ALLOWANCE = 5
"""Receives beside those for throttling: for functions that die, and for workers that meet the lease of
another worker. After a function has died, a batch works on one of its messages and gives the others back, so
there is one more for each neighbour in a batch."""


@dataclass(frozen=True)
class Waits:
    """Waits of a record after each receive that did not finish it: base, 2·base, 4·base … cap."""

    base: int
    cap: int

    @classmethod
    def of(cls, times: Times) -> "Waits":
        """Return the waits of a provider's sender."""
        return cls(times.backoff, times.backoff_cap)

    def after(self, receive: int) -> int:
        """Return the longest wait after receive number `receive`, counted from 1."""
        return int(backoff(receive, self.base, self.cap, lambda: 1.0))

    def shortest_after(self, receive: int) -> float:
        """Return the shortest wait after receive number `receive`."""
        return backoff(receive, self.base, self.cap, lambda: 0.0)

    def receives_to_cover(self, seconds: int) -> int:
        """Return the fewest receives whose shortest total lasts `seconds`."""
        total, receives = 0.0, 1
        while total < seconds:
            total += self.shortest_after(receives)
            receives += 1
        return receives


@dataclass(frozen=True)
class QueueRules:
    """Numbers of a queue and its mapping.

    lease        ├── function time-out ──┼─ margin ─┤          then the next worker may claim
    visibility   ├── 6 x time-out + batch window ───────────┤  then the queue delivers again
    """

    lease: int
    visibility: int
    max_receives: int
    longest_stay: int
    """Seconds from the first receive until the dead-letter queue, if every receive takes the longest wait."""


def visibility_of(timeout: int, window: int = 0) -> int:
    """Return AWS's advice for a queue that a function reads, with room for throttled invocations. `window` is
    the batch window in seconds."""
    return 6 * timeout + window


def queue_rules(
    times: Times,
    timeout: int,
    *,
    throttling: int | None = None,
    window: int = 0,
    batch_size: int = 1,
    waits: Waits | None = None,
) -> QueueRules:
    """Return the rules of a queue, whose function has a time-out of `timeout` seconds. `throttling` is that
    of AWS's services by default. Without `waits`, an unfinished record waits out its visibility."""
    visibility = visibility_of(timeout, window)
    waits = waits or Waits(visibility, visibility)
    receives = waits.receives_to_cover(times.throttling if throttling is None else throttling)
    receives += CRASH_ALLOWANCE + batch_size - 1
    return QueueRules(
        lease=timeout + times.lease_margin,
        visibility=visibility,
        max_receives=receives,
        longest_stay=longest_stay(waits, receives, max(visibility, times.misconfigured)),
    )


def longest_stay(waits: Waits, receives: int, at_least: int) -> int:
    """Return the longest time of `receives` together. A receive ends in a back-off or in a crash, and lasts
    for the longer of both at most."""
    return sum(max(waits.after(receive), at_least) for receive in range(1, receives + 1))


def stay_faults(setting: str, rules: QueueRules, keep: Retention) -> Iterator[str]:
    """Yield a violation of the rule that a queue keeps a message for all its receives, whose number follows
    from `setting`."""
    most_seconds = (keep.queue_days - MARGIN_DAYS) * DAY
    if rules.longest_stay > most_seconds:
        yield (
            f"{setting}: gives {rules.max_receives} receives, which may take "
            f"{rules.longest_stay} s (the longest wait or visibility after each), and SQS deletes silently "
            f"what is older than {keep.queue_days} days; they may take {most_seconds} s, a day less; "
            "lower it."
        )


def retention_faults(keep: Retention, *, fax: bool) -> Iterator[str]:
    """Yield violations of the rules of the section `retention`; `fax`: the stage has the fax queue, which is
    FIFO."""
    in_queue = keep.days_of(fifo=fax)
    need = in_queue + DEAD_LETTER_DAYS + MARGIN_DAYS
    queue = "the fax queue's" if fax else "queue_days"
    remedy = (
        f"of a message that can still be redelivered; use {need} or more ({queue} {in_queue} + "
        f"{DEAD_LETTER_DAYS} in the dead-letter queue + {MARGIN_DAYS})"
    )
    if keep.mailbox_days is not None and keep.mailbox_days < need:
        yield f"retention.mailbox_days: {keep.mailbox_days} would lose the item {remedy}, or null."
    if keep.payload_days < need:
        yield f"retention.payload_days: {keep.payload_days} would lose the content {remedy}."
