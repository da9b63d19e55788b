"""Checks at synth that the settings fit together. Each sentence has the key, the formula and its numbers."""

from collections.abc import Iterator

from stacks.derived import (
    DAY,
    RECEIVES_OVER,
    SQS_RECEIVES,
    LaneRow,
    QueueRules,
    lane_rows,
    scheduled_rules,
)
from stacks.paths import LAMBDAS
from stacks.sentences import number
from stacks.settings import Channel, Function, Settings


def broken_rules(settings: Settings) -> Iterator[str]:
    """A sentence for each rule that `settings` break, each starting with the key below the stage."""
    yield from _kept_long_enough(settings)
    for event_type, channel in settings.channels.items():
        yield from _channel(f"channels.{event_type}", channel)
    yield from _names(settings)
    for row in lane_rows(settings):
        key = f"channels.{row.event_type}"
        yield from _queue(key, row.channel, row.rules, settings)
        yield from _pace(f"{key}.lanes.{row.lane}", row)
    yield from _queue("scheduled", settings.scheduled, scheduled_rules(settings), settings)


def _kept_long_enough(settings: Settings) -> Iterator[str]:
    keep = settings.retention
    if keep.dead_letter_days <= keep.queue_days:
        yield (
            f"retention.dead_letter_days: {keep.dead_letter_days} must be over queue_days {keep.queue_days}, "
            f"for a dead letter's age counts from its first enqueue; use {keep.queue_days + 1} to 14."
        )
    need = keep.queue_days + keep.dead_letter_days + keep.margin_days
    parts = (f"{name} {getattr(keep, name)}" for name in ("queue_days", "dead_letter_days", "margin_days"))
    remedy = f"a message that can still be redelivered; use {need} or more ({' + '.join(parts)})."
    if keep.ledger_days < need:
        yield f"retention.ledger_days: {keep.ledger_days} would forget {remedy}"
    elif keep.ledger_days < keep.unprocessed_days + keep.margin_days:
        yield (
            f"retention.unprocessed_days: {keep.unprocessed_days} + margin_days {keep.margin_days} must be "
            f"at most ledger_days {keep.ledger_days}, or a replay may send again what the ledger "
            f"has forgotten; use {keep.ledger_days - keep.margin_days} or less."
        )
    if keep.payload_days < need:
        yield f"retention.payload_days: {keep.payload_days} would lose the content of {remedy}"


def _channel(key: str, channel: Channel) -> Iterator[str]:
    for needed in (f"{channel.handler}.py", f"requirements/{channel.handler}.txt"):
        if not (LAMBDAS / needed).exists():
            yield f"{key}.handler: {channel.handler!r} has no file lambdas/{needed}; add it, or name another."
    if "normal" not in channel.lanes:
        yield f"{key}.lanes.normal: is missing; a message without a lane goes there."
    if channel.backoff_cap_seconds < channel.backoff_seconds:
        yield (
            f"{key}.backoff_cap_seconds: {channel.backoff_cap_seconds} is under backoff_seconds; "
            f"use {channel.backoff_seconds} or more."
        )
    total = sum(lane.share for lane in channel.lanes.values())
    if total > 1 + 1e-9:
        shares = " + ".join(f"{name} {number(lane.share)}" for name, lane in channel.lanes.items())
        yield f"{key}.lanes: the shares {shares} = {number(total)} are over 1; lower them to 1 in all."


def _names(settings: Settings) -> Iterator[str]:
    taken = {"queue": {"scheduled"}, "function": {"dispatch", "dispatch-scheduled"}}
    for row in lane_rows(settings):
        for what, name in (("queue", row.queue), ("function", row.function)):
            if name in taken[what]:
                yield f"channels.{row.event_type}: its {what} {name!r} exists already; give it another name."
            taken[what].add(name)


def _queue(key: str, function: Function, rules: QueueRules, settings: Settings) -> Iterator[str]:
    timeout, margin = function.timeout_seconds, settings.lease_margin_seconds
    if rules.lease >= rules.visibility:
        enough = timeout + 1 + (rules.lease - rules.visibility) // 5
        yield (
            f"{key}.timeout_seconds: {timeout} gives a lease of {rules.lease} s (time-out + {margin}), "
            f"which must end before the visibility time-out of {rules.visibility} s "
            f"(6 x time-out + batch window); use {enough} or more."
        )
    if rules.max_receives > SQS_RECEIVES:
        yield _too_many_receives(key, rules)
    elif rules.longest_stay > (settings.retention.queue_days - settings.retention.margin_days) * DAY:
        yield _too_long_a_stay(key, rules, settings)


def _too_many_receives(key: str, rules: QueueRules) -> str:
    count = f"over {SQS_RECEIVES}" if rules.max_receives >= RECEIVES_OVER else str(rules.max_receives)
    return (
        f"{key}.longest_throttling_seconds: takes {count} receives (as many as cover it when each wait is at "
        f"its shortest, plus crash_allowance), and SQS allows {SQS_RECEIVES}; lower it, or raise "
        f"backoff_cap_seconds."
    )


def _too_long_a_stay(key: str, rules: QueueRules, settings: Settings) -> str:
    keep = settings.retention
    days = -(-rules.longest_stay // DAY) + keep.margin_days
    remedy = (
        f"use {days} or more" if days <= 13 else f"{days} is over 13, so lower longest_throttling_seconds"
    )
    return (
        f"retention.queue_days: {keep.queue_days} is too short for {key}, whose {rules.max_receives} "
        f"receives may take {rules.longest_stay} s (the longest wait or visibility after each) with "
        f"margin_days {keep.margin_days} on top, and SQS deletes silently past retention; {remedy}."
    )


def _pace(key: str, row: LaneRow) -> Iterator[str]:
    channel, lane = row.channel, row.polling
    last = channel.submit_seconds + channel.record_seconds
    needed = lane.batch_size * row.pace + last
    if needed >= channel.timeout_seconds:
        yield (
            f"{key}.batch_size: {lane.batch_size} x {number(row.pace)} s between submits + submit_seconds "
            f"{channel.submit_seconds} + record_seconds {channel.record_seconds} = {number(needed)} s must "
            f"be under timeout_seconds {channel.timeout_seconds} (the gap is maximum_concurrency "
            f"{lane.maximum_concurrency} / (messages_per_second {number(channel.messages_per_second)} x "
            f"share {number(lane.share)})); "
            f"{_fitting(row)}."
        )


def _fitting(row: LaneRow) -> str:
    """The largest batch that fits, or what to change where none does."""
    last = row.channel.submit_seconds + row.channel.record_seconds
    fits = int((row.channel.timeout_seconds - last - 1e-9) / row.pace)
    return (
        f"use {min(fits, 10)} or less" if fits >= 1 else "raise timeout_seconds or lower maximum_concurrency"
    )
