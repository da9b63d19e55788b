"""What holds for every queue, and for whoever waits between receives."""

from collections.abc import Iterator
from dataclasses import dataclass

from stacks.derived import DAY, RECEIVES_OVER, SQS_RECEIVES, QueueRules
from stacks.settings import Backoff, Function, Retention


@dataclass(frozen=True)
class Lever:
    """The setting of a section that the number of receives follows from, with its formula and remedy."""

    setting: str = "longest_throttling_seconds"
    formula: str = "as many as cover it when each wait is at its shortest, plus crash_allowance"
    remedy: str = "lower it, or raise backoff_cap_seconds"


def broken_queue(
    key: str, function: Function, rules: QueueRules, keep: Retention, lever: Lever | None = None
) -> Iterator[str]:
    """Rules of the queue that `key` describes."""
    lever = lever or Lever()
    timeout = function.timeout_seconds
    margin = rules.lease - timeout
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
            f"{key}.{lever.setting}: takes {count} receives ({lever.formula}), and SQS allows "
            f"{SQS_RECEIVES}; {lever.remedy}."
        )
    elif rules.longest_stay > (keep.queue_days - keep.margin_days) * DAY:
        yield _too_long_a_stay(key, rules, keep, lever)


def _too_long_a_stay(key: str, rules: QueueRules, keep: Retention, lever: Lever) -> str:
    days = -(-rules.longest_stay // DAY) + keep.margin_days
    remedy = f"use {days} or more" if days <= 13 else f"{days} is over 13, so lower {lever.setting}"
    return (
        f"retention.queue_days: {keep.queue_days} is too short for {key}, whose {rules.max_receives} "
        f"receives may take {rules.longest_stay} s (the longest wait or visibility after each) with "
        f"margin_days {keep.margin_days} on top, and SQS deletes silently past retention; {remedy}."
    )


def broken_backoff(key: str, section: Backoff) -> Iterator[str]:
    """Rules of whoever waits longer and longer."""
    if section.backoff_cap_seconds < section.backoff_seconds:
        yield (
            f"{key}.backoff_cap_seconds: {section.backoff_cap_seconds} is under backoff_seconds; "
            f"use {section.backoff_seconds} or more."
        )
