"""What a queue and its mapping are deployed with, by the design's rules. All times are in seconds."""

from dataclasses import dataclass

from stacks.derived.waits import Waits
from stacks.settings import Function, Polling, QueueWorker, Redelivery


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


def visibility_of(function: Function, polling: Polling) -> int:
    """AWS's advice for a queue that a function reads: room for throttled invocations."""
    return 6 * function.timeout_seconds + polling.batch_window_seconds


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
    visibility = visibility_of(function, polling)
    waits = waits or Waits(visibility, visibility)
    receives = waits.receives_to_cover(redelivery.longest_throttling_seconds) + redelivery.crash_allowance
    return QueueRules(
        lease=function.timeout_seconds + lease_margin,
        visibility=visibility,
        max_receives=receives,
        longest_stay=longest_stay(waits, receives, max(visibility, longest_other)),
    )


def longest_stay(waits: Waits, receives: int, at_least: int) -> int:
    """A receive ends in a back-off or in a crash: whichever lasts longer bounds it."""
    return sum(max(waits.after(each), at_least) for each in range(1, receives + 1))


def worker_rules(section: QueueWorker, lease_margin: int) -> QueueRules:
    """The rules of a queue whose section says everything."""
    return queue_rules(section, section, section, lease_margin)
