"""The overview, as four answers: how fast messages go out, what asks for somebody, the last 24 hours, and
the channels."""

from collections import Counter
from collections.abc import Sequence
from functools import partial

from msgspec import Struct

from mailroom.ledger.reader import TWICE, MessageStatus
from mailroom.search.finder import Filter
from mailroom_ops.console.pages.messages import deployed_at, finder_at
from mailroom_ops.console.site import KEPT_SECONDS, Answer, Asked, Shown, Site, View
from mailroom_ops.console.snapshot import QueueSnapshot, Snapshot, Watcher
from mailroom_ops.console.traffic import Hour, Traffic
from mailroom_ops.doctor.stage import ConfiguredStage
from mailroom_ops.lanes.deployed import DeployedLanes, Lane
from mailroom_ops.messages.outages import SAMPLE, Outage, outages_among
from mailroom_ops.messages.waiting import ClosedDay, closed_days
from mailroom_ops.stage import is_dead
from mailroom_ops.times import speed_of
from mailroom_stacks.settings.monitoring import BOUNCE_RATE, COMPLAINT_RATE

SNAPSHOT_SECONDS = 4.0
"""Several tabs share a look at the queues. Figures are kept for longer, where CloudWatch bills a look."""
ACCEPTED = ("sent", "delivered", "undelivered", "bounced", "complained")
UNHURRIED = ("fax", "webhook")
"""Channels that carry no codes."""


class ChannelRow(Struct, frozen=True):
    """One channel."""

    channel: str
    waiting: int
    in_flight: int
    dead: int
    cause: str
    """Trouble of the newest message that is a dead letter; empty if there is none."""
    oldest_seconds: float | None
    """Seconds for which the oldest message waits; None if CloudWatch has no figure."""
    accepted: int
    wrong: int
    pace: float
    """Messages a second of the best of the last minutes."""
    limit: float | None
    """Messages a second that the settings allow; None if there is no limit, or no settings here."""
    went_back: float
    """Part of the newest tries that went back unsent."""
    p50: float | None
    """Seconds from put to accepted that half of the newest messages needed at most."""
    p99: float | None
    """Seconds from put to accepted that 99 % of the newest messages needed at most."""

    @property
    def pace_words(self) -> str:
        """The pace, beside its limit."""
        pace = "under 0.1" if 0 < self.pace < 0.1 else speed_of(self.pace)
        return pace if self.limit is None else f"{pace} of {speed_of(self.limit)}"


class _Accepted(Filter, frozen=True):
    """Filter of mails that their provider has accepted."""

    def takes(self, message: MessageStatus) -> bool:
        return message.event_type == "mail" and message.status in ACCEPTED


class Rate(Struct, frozen=True):
    """The part of the newest mails that ended so, beside what SES looks into (None: the more the better)."""

    name: str
    status: str
    count: int
    mails: int
    limit: float | None = None

    @property
    def part(self) -> float:
        """Part of the mails that ended so."""
        return self.count / self.mails

    @property
    def high(self) -> bool:
        """Whether SES would look into it."""
        return self.limit is not None and self.part >= self.limit


class Overview(View, frozen=True):
    """Values of the overview."""

    snapshot: Snapshot
    rows: list[ChannelRow]
    others: list[QueueSnapshot]
    hours: list[Hour]
    """Hours of the last day, the oldest first; empty if CloudWatch has no figures."""
    rates: list[Rate]
    """Rates of the newest mails that were accepted; empty if nobody can tell them."""
    outages: list[Outage]
    closed: list[ClosedDay]
    paused: list[Lane]
    """Lanes that are paused."""
    twice: int
    """Number of the newest messages that may have arrived twice."""
    slowest: ChannelRow | None
    """Channel whose codes take the longest, or None if no code was accepted lately."""


def show(site: Site, _: Asked) -> Answer:
    """The page. Raises NotDeployed, and botocore's errors."""
    deployed, finder = deployed_at(site), finder_at(site)
    routes = deployed.dispatch.routes
    seconds = SNAPSHOT_SECONDS if site.stage == "local" else KEPT_SECONDS
    watcher = site.kept("watcher", lambda: Watcher(site.session, site.stage), seconds=86_400)
    snapshot = site.kept("snapshot", lambda: watcher.look(site.clock()), SNAPSHOT_SECONDS)
    client = site.client("cloudwatch")
    traffic = site.kept("traffic", lambda: Traffic(client, site.stage, routes, site.clock()), seconds)
    configured = site.kept("configured", lambda: ConfiguredStage.read(site.stage))
    lanes = site.kept("lanes", DeployedLanes(deployed).read, seconds)
    newest = site.kept("newest", lambda: finder.newest(most=SAMPLE).messages if finder else [], seconds)
    rows = [_row(channel, snapshot, traffic, newest, configured) for channel in routes]
    of_channels = [queue for channel in routes for queue in _of(channel, snapshot)]
    codes = [row for row in rows if row.p99 is not None and row.channel not in UNHURRIED]
    return Shown(
        Overview(
            snapshot,
            rows,
            [queue for queue in snapshot.queues if queue not in of_channels],
            traffic.hours(),
            site.kept("rates", partial(_rates, site), max(seconds, KEPT_SECONDS / 4)),
            outages_among(newest),
            site.kept("closed", partial(closed_days, site.session, site.stage, site.clock), seconds),
            [lane for lane in lanes if lane.paused],
            sum(TWICE in message.details for message in newest),
            max(codes, key=lambda row: row.p99 or 0.0, default=None),
        )
    )


def _of(channel: str, snapshot: Snapshot) -> list[QueueSnapshot]:
    """A channel's queues: its lanes', its retries', and the dead-letter queues of all of them."""
    names = ((each, each.name.removesuffix(".fifo")) for each in snapshot.queues)
    return [each for each, base in names if base == channel or base.startswith(f"{channel}-")]


def _row(
    channel: str,
    snapshot: Snapshot,
    traffic: Traffic,
    newest: Sequence[MessageStatus],
    configured: ConfiguredStage,
) -> ChannelRow:
    queues = _of(channel, snapshot)
    depths = [queue.depth for queue in queues if not is_dead(queue.name)]
    dead = [message for message in newest if "dead_lettered_at" in message.times]
    causes = [
        message.trouble["message"] for message in dead if message.event_type == channel and message.trouble
    ]
    rates = [lane.rate for lane in configured.lanes if lane.channel == channel]
    limits = [rate for rate in rates if rate is not None]
    times = (traffic.newest(channel, name) for name in ("p50", "p99"))
    return ChannelRow(
        channel,
        sum(depth.visible + depth.delayed for depth in depths),
        sum(depth.in_flight for depth in depths),
        sum(queue.depth.all for queue in queues if is_dead(queue.name)),
        "".join(causes[:1]),
        traffic.newest(channel, "age"),
        traffic.count(channel, "accepted"),
        traffic.count(channel, "wrong"),
        traffic.pace(channel),
        sum(limits) if limits and len(limits) == len(rates) else None,
        traffic.count(channel, "went back")
        / (traffic.count(channel, "sent") + traffic.count(channel, "went back") or 1),
        *(None if time is None else time / 1000 for time in times),
    )


def _rates(site: Site) -> list[Rate]:
    """Return the rates of the newest mails by the ledger, which has none of the provider's own figures."""
    finder = finder_at(site)
    if finder is None:
        return []
    counts = Counter(mail.status for mail in finder.newest(_Accepted(), most=SAMPLE).messages)
    accepted = counts.total()
    if not accepted:
        return []
    delivered = counts["delivered"] + counts["complained"]
    return [
        Rate("delivered", "delivered", delivered, accepted),
        Rate("bounced", "bounced", counts["bounced"], accepted, BOUNCE_RATE),
        Rate("complaints", "complained", counts["complained"], accepted, COMPLAINT_RATE),
    ]
