"""Rules of queues: waits, number of receives and retention, with the numbers derived from them. Times are in
seconds unless their names contain another unit."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from mailroom.clock import backoff
from mailroom.ledger.status_reader import REMEMBERED_SECONDS
from mailroom_stacks.settings.sections import Section
from mailroom_stacks.settings.times import Times


class Release(Section):
    """Settings of the function `release`, which puts due messages into their queues every minute."""

    memory_mb: int = Field(default=512, ge=256, le=1769)
    """Memory in MiB. With more memory, the function has more CPU and puts due messages into their queues
    faster."""


class Stream(Section):
    """Settings of the function that reads a table's stream: `dispatch` for the mailbox, `outcomes` for the
    ledger."""

    parallelization: int = Field(default=2, ge=1, le=10)
    """Number of batches of one shard of the stream that are processed in parallel."""


LEAST_LEDGER_DAYS = REMEMBERED_SECONDS // 86_400
"""Minimum number of days for which every ledger keeps an item, whatever `ledger_days` is now. An item expires
by the setting at its last write, so the current setting does not show which items have expired."""


UNPROCESSED_DAYS = 30
"""Days for which the bucket keeps the records of streams that a function gave up on. They are far fewer than
LEAST_LEDGER_DAYS, because a replay could send a message again whose ledger item has expired. They are also no
more than an erasure may take to complete."""


DEAD_LETTER_DAYS = 14
"""Days for which a dead-letter queue keeps a message, SQS's maximum."""
MARGIN_DAYS = 1
"""Days added to derived retention times, because a message may wait behind others before its first
receive."""


class Retention(Section):
    """Retention times of data."""

    queue_days: int = Field(default=4, ge=4, le=13)
    """Days for which a queue keeps a message (the fax queue: 14 days). The age of a dead letter counts from
    its first enqueue, and SQS deletes it after 14 days in total."""
    ledger_days: int = Field(default=LEAST_LEDGER_DAYS, ge=LEAST_LEDGER_DAYS, le=3650)
    """Days for which the ledger keeps a message after its last change. A changed setting does not apply to an
    item until it is written again."""
    mailbox_days: int | None = Field(default=None, ge=1, le=3650)
    """Days from a message's `send_at`, or from now without `send_at`, to the `ttl` that the API, campaigns
    and imports give its mailbox item; null keeps items for ever. With 80 or less, no item outlives the
    message's ledger item."""
    payload_days: int = Field(default=90, ge=1, le=3650)
    """Days for which the payload bucket keeps an object."""
    log_days: Literal[1, 7, 14, 30, 90, 180, 365] = 30
    """Days for which logs are kept."""

    def days_of(self, *, fifo: bool) -> int:
        """Return the number of days for which a queue keeps a message. A FIFO queue keeps messages as long as
        its dead-letter queue: a message may wait behind others for long, and its age starts anew in the
        dead-letter queue."""
        return DEAD_LETTER_DAYS if fifo else self.queue_days


DAY = 86_400
RESEND_DELAYS = (0, 1_800, 7_200)
"""Waits in seconds after a try of unknown outcome, if `on_unknown` is "resend". The message is sent again
after the wait, and only if the lease of the try has ended. If the outcome is unknown again after the last
wait, the message becomes a dead letter. A wait is a visibility timeout, for which SQS allows at most 12
hours."""
CRASH_ALLOWANCE = 5
"""Receives in addition to those for throttling: for functions that crash, and for workers that find a message
claimed by another worker. After a crash, a worker delivers one message of a batch and returns the others, so
one more receive is added for each other message of a batch."""


@dataclass(frozen=True)
class Waits:
    """Waits in seconds after each receive that did not finish a record: base, 2·base, 4·base … cap."""

    base: int
    cap: int

    @classmethod
    def of(cls, times: Times) -> "Waits":
        """Return the waits between receives in the queue of a sender."""
        return cls(times.backoff, times.backoff_cap)

    def after(self, receive: int) -> int:
        """Return the longest wait after receive number `receive`, counted from 1."""
        return int(backoff(receive, self.base, self.cap, lambda: 1.0))

    def shortest_after(self, receive: int) -> float:
        """Return the shortest wait after receive number `receive`."""
        return backoff(receive, self.base, self.cap, lambda: 0.0)

    def receives_to_cover(self, seconds: int) -> int:
        """Return the lowest number of receives whose waits last `seconds` in total, even if each wait is the
        shortest."""
        total, receives = 0.0, 1
        while total < seconds:
            total += self.shortest_after(receives)
            receives += 1
        return receives


@dataclass(frozen=True)
class QueueRules:
    """Numbers of a queue and its event source mapping.

    lease        ├── function time-out ──┼─ margin ─┤          then the next worker may claim
        visibility   ├── 6 x time-out + batch window ───────────┤  then the queue delivers again
    """

    lease: int
    visibility: int
    max_receives: int
    longest_stay: int
    """Seconds from a message's first receive until it is moved to the dead-letter queue, if every receive is
    followed by its longest wait."""


def visibility_of(timeout: int, window: int = 0) -> int:
    """Return the visibility timeout that AWS recommends for a queue that a function reads, which leaves time
    for throttled invocations. `timeout` is the function's time-out and `window` the batch window, in
    seconds."""
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
    """Return the rules of a queue whose function has a time-out of `timeout` seconds. `throttling` is the
    time in seconds for which requests may be throttled before messages become dead letters; the default is
    the time for AWS services. Without `waits`, an unfinished record is received again after the visibility
    timeout."""
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
    """Return the longest total time of `receives`, in seconds. A receive ends in a back-off or in a crash, so
    it counts for the longer of its wait and `at_least`."""
    return sum(max(waits.after(receive), at_least) for receive in range(1, receives + 1))


def stay_faults(setting: str, rules: QueueRules, keep: Retention) -> Iterator[str]:
    """Yield a violation if a queue's retention is shorter than the longest time of all receives. `setting` is
    the key of the setting from which the number of receives follows."""
    most_seconds = (keep.queue_days - MARGIN_DAYS) * DAY
    if rules.longest_stay > most_seconds:
        yield (
            f"{setting}: leads to {rules.max_receives} receives, which may take "
            f"{rules.longest_stay} s (the longest wait or visibility timeout after each); the limit is "
            f"{most_seconds} s, one day less than the {keep.queue_days} days after which SQS deletes a "
            "message; lower it."
        )


def retention_faults(keep: Retention, *, fax: bool, queues: int = 1) -> Iterator[str]:
    """Yield violations of the rules of the section `retention`. `fax` is whether the stage has the fax queue,
    which is a FIFO queue. `queues` is the number of queues in which a message may wait, one after
    another."""
    in_queue = max(keep.days_of(fifo=fax), keep.queue_days * queues)
    need = in_queue + DEAD_LETTER_DAYS + MARGIN_DAYS
    queue = "in the fax or another queue" if fax else "in its queues, by queue_days"
    remedy = (
        f"of a message that can still be redelivered; use {need} or more ({in_queue} {queue} + "
        f"{DEAD_LETTER_DAYS} in the dead-letter queue + {MARGIN_DAYS})"
    )
    if keep.mailbox_days is not None and keep.mailbox_days < need:
        yield f"retention.mailbox_days: {keep.mailbox_days} would lose the item {remedy}, or null."
    if keep.payload_days < need:
        yield f"retention.payload_days: {keep.payload_days} would lose the content {remedy}."
