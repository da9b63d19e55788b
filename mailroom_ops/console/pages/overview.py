"""Page of the overview: the speed of sending, alarms and faults, the last 24 hours, and the channels."""

import math
from collections.abc import Iterable
from functools import partial

from msgspec import Struct

from mailroom.campaigns.runs import PausedRun, Runs
from mailroom.clock import iso
from mailroom_ops.campaigns.ending import Figures, figures_of
from mailroom_ops.console.site import KEPT_SECONDS, Answer, Request, Shown, Site, View
from mailroom_ops.console.snapshot import QueueSnapshot, Snapshot, look
from mailroom_ops.messages.deployed_lanes import Lane, unread_queues
from mailroom_ops.messages.traffic import RATED, Hour, Traffic, end_at
from mailroom_ops.messages.waiting import ClosedDay, closed_days
from mailroom_ops.shared.deployed_stage import is_dead, name
from mailroom_ops.shared.times import speed_of
from mailroom_stacks.settings.constants import BOUNCE_RATE, COMPLAINT_RATE, SLOW_SECONDS

SNAPSHOT_SECONDS = 4.0
"""Seconds for which the counts of the queues are cached for all browser tabs. CloudWatch's figures are cached
for longer, because requests for them cost money."""
UNREAD = "by an operator: the page Lanes shows when and why"
"""Text about a lane that is paused. Its reason would be a call for each lane."""
PUMPED = "mailroom-local-fax.fifo"
"""Queue that the local stage reads by a program of its own, with its mapping disabled."""


class ChannelRow(Struct, frozen=True):
    """Values of a channel in the overview."""

    channel: str
    waiting: int
    in_flight: int
    dead: int
    pace: float
    """Messages a second that were accepted in the best of the last minutes."""
    until: str
    """Estimated time (ISO 8601) when the last waiting message is sent; empty if no message waits, or if a
    lane with waiting messages sends none at present."""
    limit: float | None
    """Messages a second that the settings allow; None if they are unlimited or unknown."""
    accepted: int
    wrong: int
    age: float | None
    """Seconds for which the oldest message has waited; None if CloudWatch does not have the figure."""
    p50: float | None
    """Milliseconds from put to accepted that half of the newest messages needed at most."""
    p99: float | None
    """Milliseconds from put to accepted that 99 % of the newest messages needed at most."""

    @property
    def is_late(self) -> bool:
        """Whether more than half of the newest messages missed the objective of the alarm `codes-late`."""
        return self.p50 is not None and self.p50 >= SLOW_SECONDS * 1000

    @property
    def pace_words(self) -> str:
        """Text with the pace and its limit."""
        pace = "under 0.1" if 0 < self.pace < 0.1 else speed_of(round(self.pace, 1))
        return pace if self.limit is None else f"{pace} of {speed_of(self.limit)}"


class Rate(Struct, frozen=True):
    """Share of the mails of the last 24 hours that have an outcome."""

    status: str
    part: float
    limit: float | None
    """Share from which on SES reviews the account; None for `delivered`."""

    @property
    def high(self) -> bool:
        """Whether SES would review the account for this rate."""
        return self.limit is not None and self.part >= self.limit


class Overview(View, frozen=True):
    """Values of the overview."""

    snapshot: Snapshot
    rows: list[ChannelRow]
    others: list[QueueSnapshot]
    hours: list[Hour]
    """Hours of the last day, the oldest first; empty if CloudWatch has no figures."""
    rates: list[Rate]
    """Rates of the mails that were accepted; empty if there were none."""
    outages: dict[str, str]
    """Channels of the lanes, by the name of the alarm that rings if most tries of a lane fail."""
    closed: list[ClosedDay]
    paused: list[Lane]
    """Lanes that are paused."""
    paused_runs: list[PausedRun]
    twice: int
    """Number of tries of the last 24 hours that followed a try whose outcome was not found out."""
    slow_ms: int = SLOW_SECONDS * 1000


def show(site: Site, _: Request) -> Answer:
    """Show the page. Raises Refused, and botocore's errors. The page needs one call for each queue, and eight
    more: for the list of queues, settings, alarms, pauses of lanes, pauses of runs and budgets, and two for
    metrics."""
    stage, seconds, dynamodb = site.stage, _seconds(site), site.client("dynamodb")
    facts, urls, traffic = figures_at(site)
    clients = site.client("sqs"), site.client("cloudwatch")
    snapshot = site.kept("snapshot", partial(look, *clients, stage, urls), SNAPSHOT_SECONDS)
    unread = site.kept("unread", partial(unread_queues, site.client("lambda")), seconds)
    closed = site.kept("closed", partial(closed_days, dynamodb, facts, site.clock), seconds)
    runs = site.kept("runs", Runs(dynamodb, name(stage, "campaign-runs")).paused, seconds)
    limits = site.kept("limits", site.limits)
    depths = {name(stage, queue.name): queue.depth.all for queue in snapshot.queues}
    lanes = {
        queue: Lane(channel, lane, depths.get(queue, 0), UNREAD if queue in unread - {PUMPED} else "")
        for channel, of_channel in traffic.routes.items()
        for lane, queue in ((lane, url.rpartition("/")[2]) for lane, url in of_channel.items())
    }
    outages = {f"{queue.removesuffix('.fifo')}-tries-failing": lane.channel for queue, lane in lanes.items()}
    rows = [
        _row(channel, snapshot, traffic, lanes.values(), limits.get(channel), site.clock())
        for channel in facts.routes
    ]
    of_channels = [queue for channel in facts.routes for queue in _of(channel, snapshot)]
    further = [queue for queue in snapshot.queues if queue not in of_channels]
    paused = [lane for lane in lanes.values() if lane.paused]
    facts_of_day = traffic.hours(), _rates(traffic), outages, closed, paused, runs, traffic.count("resent")
    return Shown(Overview(snapshot, rows, further, *facts_of_day))


def figures_at(site: Site) -> Figures:
    """Return the figures of the stage, which all pages share. Raises Refused."""
    return site.kept("figures", partial(figures_of, site.session, site.stage, site.clock), _seconds(site))


def _seconds(site: Site) -> float:
    """Return the seconds for which values are cached that cost money in an account of AWS."""
    return SNAPSHOT_SECONDS if site.stage == "local" else KEPT_SECONDS


def _of(channel: str, snapshot: Snapshot) -> list[QueueSnapshot]:
    """Return the queues of a channel: of its lanes and retries, and their dead-letter queues."""
    names = ((queue, queue.name.removesuffix(".fifo")) for queue in snapshot.queues)
    return [queue for queue, base in names if base == channel or base.startswith(f"{channel}-")]


def _row(
    channel: str,
    snapshot: Snapshot,
    traffic: Traffic,
    lanes: Iterable[Lane],
    limit: float | None,
    now_s: float,
) -> ChannelRow:
    queues = _of(channel, snapshot)
    depths = [queue.depth for queue in queues if not is_dead(queue.name)]
    end = max(
        (
            end_at(lane.waiting, traffic.pace(channel, lane.lane), now_s)
            for lane in lanes
            if lane.channel == channel and lane.waiting
        ),
        default=math.inf,
    )
    return ChannelRow(
        channel,
        sum(depth.visible + depth.delayed for depth in depths),
        sum(depth.in_flight for depth in depths),
        sum(queue.depth.all for queue in queues if is_dead(queue.name)),
        traffic.pace(channel),
        iso(end) if end < math.inf else "",
        limit,
        *(traffic.count(figure, channel) for figure in ("accepted", "wrong")),
        *(traffic.newest(channel, figure) for figure in ("age", "p50", "p99")),
    )


def _rates(traffic: Traffic) -> list[Rate]:
    """Return the shares of the accepted mails. An outcome may be of a mail that was accepted before."""
    limits = {"delivered": None, "bounced": BOUNCE_RATE, "complained": COMPLAINT_RATE}
    accepted, counts = (
        traffic.count("accepted", RATED),
        {status: traffic.count(status, RATED) for status in limits},
    )
    return [
        Rate(status, min(1.0, counts[status] / accepted), limits[status]) for status in limits if accepted
    ]
