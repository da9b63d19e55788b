"""Page of the overview: the speed of sending, alarms and faults, the last 24 hours, and the channels."""

from collections import Counter
from collections.abc import Sequence
from functools import partial

from msgspec import Struct

from mailroom.campaigns.runs import Run
from mailroom.ledger.status_reader import TWICE, MessageStatus
from mailroom.message.outcome import ACCEPTED
from mailroom.search.finder import Filter, Finder
from mailroom_ops.campaigns.deployed import DeployedCampaigns
from mailroom_ops.console.pages.messages import deployed_at, finder_at
from mailroom_ops.console.site import KEPT_SECONDS, Answer, Request, Shown, Site, View
from mailroom_ops.console.snapshot import QueueSnapshot, Snapshot, look
from mailroom_ops.console.traffic import Hour, Traffic
from mailroom_ops.costs.configured_lanes import ConfiguredLane, lanes_of
from mailroom_ops.doctor.examined_stage import settings_or_trouble
from mailroom_ops.messages.deployed_lanes import DeployedLanes, Lane
from mailroom_ops.messages.outages import SAMPLE, Outage, outages_among
from mailroom_ops.messages.waiting import ClosedDay, closed_days
from mailroom_ops.shared.deployed_stage import is_dead
from mailroom_ops.shared.times import speed_of
from mailroom_stacks.settings.monitoring import BOUNCE_RATE, COMPLAINT_RATE

SNAPSHOT_SECONDS = 4.0
"""Seconds for which the counts of the queues are cached for all browser tabs. CloudWatch's figures are cached
for longer, because requests for them cost money."""


LATEST_RUNS = 3
"""Number of runs of each campaign that are read to find paused ones."""


class ChannelRow(Struct, frozen=True):
    """Values of a channel in the overview."""

    channel: str
    waiting: int
    in_flight: int
    dead: int
    cause: str
    """Trouble of the newest message that is a dead letter; empty if there is none."""
    pace: float
    """Messages a second that were accepted in the best of the last minutes."""
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
    def pace_words(self) -> str:
        """Text with the pace and its limit."""
        pace = "under 0.1" if 0 < self.pace < 0.1 else speed_of(round(self.pace, 1))
        return pace if self.limit is None else f"{pace} of {speed_of(self.limit)}"


class _Accepted(Filter, frozen=True):
    """Filter of mails that their provider has accepted."""

    def takes(self, message: MessageStatus) -> bool:
        return message.event_type == "mail" and message.status in ACCEPTED


class Rate(Struct, frozen=True):
    """Share of the newest mails that have a status."""

    status: str
    part: float
    mails: int
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
    """Rates of the newest mails that were accepted; empty if they are unknown."""
    outages: list[Outage]
    closed: list[ClosedDay]
    paused: list[Lane]
    """Lanes that are paused."""
    paused_runs: list[Run]
    """Paused runs among the latest of each campaign."""
    twice: int
    """Number of the newest messages that may have arrived twice."""


def show(site: Site, _: Request) -> Answer:
    """Show the page. Raises NotDeployed, and botocore's errors."""
    deployed, finder = deployed_at(site), finder_at(site)
    seconds = SNAPSHOT_SECONDS if site.stage == "local" else KEPT_SECONDS
    client = site.client("cloudwatch")
    routes = site.kept("routes", lambda: DeployedLanes(deployed).routes, seconds)
    snapshot = site.kept("snapshot", partial(look, site.client("sqs"), client, site.stage), SNAPSHOT_SECONDS)
    traffic = site.kept("traffic", lambda: Traffic(client, site.stage, routes, site.clock()), seconds)
    settings = site.kept("settings", lambda: settings_or_trouble(site.stage))
    configured = [] if isinstance(settings, str) else lanes_of(settings)
    enabled = () if isinstance(settings, str) else settings.campaigns.enabled
    lanes = site.kept("lanes", DeployedLanes(deployed).read, seconds)
    newest = site.kept("newest", lambda: finder.newest(size=SAMPLE).messages if finder else [], seconds)
    rows = [_row(channel, snapshot, traffic, newest, configured) for channel in routes]
    of_channels = [queue for channel in routes for queue in _of(channel, snapshot)]
    return Shown(
        Overview(
            snapshot,
            rows,
            [queue for queue in snapshot.queues if queue not in of_channels],
            traffic.hours(),
            site.kept("rates", partial(_rates, finder), max(seconds, KEPT_SECONDS / 4)),
            outages_among(newest),
            site.kept("closed", partial(closed_days, site.session, site.stage, site.clock), seconds),
            [lane for lane in lanes if lane.paused],
            [run for run in site.kept("runs", partial(_latest_runs, site, enabled), seconds) if run.paused],
            sum(TWICE in message.details for message in newest),
        )
    )


def _latest_runs(site: Site, enabled: Sequence[str]) -> list[Run]:
    campaigns = DeployedCampaigns(site.session, site.stage)
    return [run for name in enabled for run in campaigns.runs(name, LATEST_RUNS)]


def _of(channel: str, snapshot: Snapshot) -> list[QueueSnapshot]:
    """Return the queues of a channel: of its lanes and retries, and their dead-letter queues."""
    names = ((queue, queue.name.removesuffix(".fifo")) for queue in snapshot.queues)
    return [queue for queue, base in names if base == channel or base.startswith(f"{channel}-")]


def _row(
    channel: str,
    snapshot: Snapshot,
    traffic: Traffic,
    newest: list[MessageStatus],
    lanes: list[ConfiguredLane],
) -> ChannelRow:
    queues = _of(channel, snapshot)
    depths = [queue.depth for queue in queues if not is_dead(queue.name)]
    causes = [
        message.trouble["message"]
        for message in newest
        if message.event_type == channel and message.trouble and "dead_lettered_at" in message.times
    ]
    # The rate of a second provider is not added: a message is sent by one of the two.
    rates = [lane.rate for lane in lanes if lane.channel == channel and not lane.is_fallback]
    return ChannelRow(
        channel,
        sum(depth.visible + depth.delayed for depth in depths),
        sum(depth.in_flight for depth in depths),
        sum(queue.depth.all for queue in queues if is_dead(queue.name)),
        causes[0] if causes else "",
        traffic.pace(channel),
        sum(rate or 0.0 for rate in rates) if rates and None not in rates else None,
        *(traffic.count(channel, name) for name in ("accepted", "wrong")),
        *(traffic.newest(channel, name) for name in ("age", "p50", "p99")),
    )


def _rates(finder: Finder | None) -> list[Rate]:
    """Return the rates of the newest mails by the statuses in the ledger; the provider's own figures may
    differ."""
    mails = finder.newest(_Accepted(), size=SAMPLE).messages if finder else []
    counts = Counter(mail.status for mail in mails)
    counts["delivered"] += counts["complained"]
    limits = {"delivered": None, "bounced": BOUNCE_RATE, "complained": COMPLAINT_RATE}
    return [Rate(name, counts[name] / len(mails), len(mails), limits[name]) for name in limits if mails]
