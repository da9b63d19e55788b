"""Estimated end of a run: the one number that the console's pages and `mailroom campaign status` show."""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from mailroom.clock import Clock, iso
from mailroom_ops.campaigns.progress import Progress
from mailroom_ops.messages.deployed_lanes import with_fallbacks
from mailroom_ops.messages.traffic import MINUTE, Traffic
from mailroom_ops.messages.waiting import UNKNOWN, ReleaseFacts, outlook_of, release_facts
from mailroom_ops.shared.deployed_stage import depth, queue_urls
from mailroom_ops.shared.times import short, speed_of

if TYPE_CHECKING:
    import boto3

FIRST_SECONDS = 5 * MINUTE
"""Seconds after a start in which the rate of the settings stands for the run's pace: messages are composed
first, and CloudWatch has their metrics some minutes later."""


class End(Struct, frozen=True):
    """Estimated end of a run, under the assumptions of `Outlook`."""

    at: str
    """Time (ISO 8601), rounded up to a minute; empty if the run does not end at its present pace."""
    words: str
    """End as a part of a sentence, with the pace from which it follows, or with the cause that prevents
    it."""


class Figures(NamedTuple):
    """Facts about a stage from which the ends of its runs follow."""

    release: ReleaseFacts
    queues: dict[str, str]
    """URLs of the stage's queues, by short name."""
    traffic: Traffic


def figures_of(session: "boto3.Session", stage: str, clock: Clock) -> Figures:
    """Read the figures of a stage. Raises Refused."""
    facts, queues = release_facts(session, stage), queue_urls(session.client("sqs"), stage)
    routes = with_fallbacks(facts.routes, queues, stage)
    return Figures(facts, queues, Traffic(session.client("cloudwatch"), stage, routes, clock()))


def end_of(
    session: "boto3.Session", progress: Progress, channel: str, figures: Callable[[], Figures], clock: Clock
) -> End | None:
    """Return the end of a run. Return None if all messages are sent, if their number is still unknown, if
    they wait for their time, or if the figures, the queue or the budget cannot be read."""
    run, results, unsent = progress.run, progress.results, progress.unsent
    if not unsent or results is None or run.phase not in ("collected", "paused"):
        return None
    if run.paused:
        return End("", "no end while the run is paused")
    try:
        facts, _, traffic = figures()
        # Messages of other runs in the queue may be sent before the last one of this run.
        unsent = max(unsent, depth(session.client("sqs"), facts.routes[channel]["bulk"]).all)
        pace, rate = traffic.pace(channel, "bulk"), facts.lines[channel].per_second
        outlook = outlook_of(session.client("dynamodb"), facts, channel, unsent, clock, pace)
    except UNKNOWN:
        return None
    if results.waiting and not outlook.waits_for_day:
        return None
    is_new = clock() < run.valid_from / 1000 + FIRST_SECONDS
    if not (pace or is_new or outlook.waits_for_day) and traffic.readable:
        return End("", "no end at the present pace: no message was accepted in the last minutes")
    reason = f"at the rate of the settings, {speed_of(rate)} a second, until messages leave"
    if outlook.by_day:
        reason = "as the daily quota allows"
    elif pace:
        reason = f"at the present pace of {speed_of(pace)} a second"
    return End(iso(outlook.until), f"until about {short(iso(outlook.until))}, {reason}")
