"""The overview: how the stage does, a channel a row, and what rings."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from mailroom.ledger.reader import TWICE, MessageStatus
from mailroom.search.finder import Filter
from mailroom_ops.console.pages.failures import QUICK, newest
from mailroom_ops.console.pages.messages import deployed_at, finder_at
from mailroom_ops.console.site import KEPT_SECONDS, Answer, Asked, Shown, Site, View
from mailroom_ops.console.snapshot import QueueSnapshot, Snapshot, Watcher
from mailroom_ops.doctor.stage import ConfiguredStage
from mailroom_ops.lanes.deployed import DeployedLanes, Lane
from mailroom_ops.messages.failures import AHEAD, FailureFilter, failed
from mailroom_ops.stage import is_dead, prefix
from mailroom_ops.times import short, speed_of
from mailroom_stacks.settings.monitoring import BOUNCE_RATE, COMPLAINT_RATE

SNAPSHOT_SECONDS = 4.0
"""Several tabs share a look at the queues. The plots are kept for longer, where CloudWatch bills a look."""
SAMPLE = 500
"""Number of newest messages that are counted, and of newest mails that rates are of."""
OUTAGE = 10
"""Minimum number of messages with the same trouble that the overview reports."""
ACCEPTED = ("sent", "delivered", "undelivered", "bounced", "complained")
BAR_MINUTES, BARS = 5, 12
"""A plot is of an hour."""
_PERIOD = BAR_MINUTES * 60


class Plot(Struct, frozen=True):
    """Counts, the oldest first, and what they are in words."""

    counts: list[int]
    words: str

    @property
    def bars(self) -> list[tuple[int, int, int]]:
        """Left, top and height of each bar, in a picture of 60 by 20."""
        most = max(self.counts, default=0) or 1
        heights = [round(20 * each / most) or (1 if each else 0) for each in self.counts]
        return [(5 * at, 20 - height, height) for at, height in enumerate(heights)]


class ChannelRow(Struct, frozen=True):
    """One channel. `accepted` None: CloudWatch has no figures. `wrong` counts what went wrong, by the ledger.
    `limit`: messages a second that the settings allow (None: no limit, or the settings are not here);
    `pace`: those of the last minutes."""

    channel: str
    waiting: int
    in_flight: int
    dead: int
    oldest_seconds: float | None
    accepted: Plot | None
    wrong: int
    pace: float | None
    limit: float | None

    @property
    def pace_words(self) -> str:
        """The pace, beside its limit."""
        slow = self.pace is not None and 0 < self.pace < 0.1
        pace = "under 0.1" if slow else speed_of(self.pace or 0.0)
        return f"{pace}/s" if self.limit is None else f"{pace} of {speed_of(self.limit)}/s"


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
    measured: bool
    """Whether CloudWatch has figures."""
    accepted: int
    wrong: int
    more_wrong: bool
    """Whether more went wrong than were counted."""
    rates: list[Rate]
    """Rates of the newest mails that were accepted; empty if nobody can tell them."""
    paused: list[Lane]
    """Lanes that are paused."""
    twice: int
    """Number of the newest messages that may have arrived twice."""
    outages: list[str]
    """Sentences about troubles that many of the newest messages share."""


def show(site: Site, _: Asked) -> Answer:
    """The page. Raises NotDeployed, and botocore's errors."""
    lanes = {channel: _names(urls) for channel, urls in deployed_at(site).dispatch.routes.items()}
    watcher = site.kept("watcher", lambda: Watcher(site.session, site.stage), seconds=86_400)
    snapshot = site.kept("snapshot", lambda: watcher.look(site.clock()), SNAPSHOT_SECONDS)
    seconds = SNAPSHOT_SECONDS if site.stage == "local" else KEPT_SECONDS
    traffic = site.kept("traffic", partial(_traffic, site, lanes), seconds)
    configured = site.kept("configured", lambda: ConfiguredStage.read(site.stage))
    wrong, more = site.kept("wrong", partial(_wrong, site, list(lanes)), seconds)
    rows = [
        _row(channel, names, snapshot, traffic, wrong[channel], configured, site.clock())
        for channel, names in lanes.items()
    ]
    lane_queues = {queue.name for row in lanes for queue in _of(row, snapshot)}
    others = [queue for queue in snapshot.queues if queue.name not in lane_queues]
    measured = any(row.accepted for row in rows)
    accepted = sum(sum(row.accepted.counts) for row in rows if row.accepted)
    rates = site.kept(
        "rates", partial(_rates, site), KEPT_SECONDS / 4 if site.stage == "local" else KEPT_SECONDS
    )
    deployed_lanes = site.kept("lanes", DeployedLanes(deployed_at(site)).read, seconds)
    paused = [lane for lane in deployed_lanes if lane.paused]
    finder = finder_at(site)
    recent = site.kept("recent", lambda: finder.newest(most=SAMPLE).messages if finder else [], seconds)
    twice = sum(TWICE in message.details for message in recent)
    figures = (accepted, wrong.total(), more, rates, paused, twice, _outages(recent))
    return Shown(Overview(snapshot, rows, others, measured, *figures))


def _names(urls: Mapping[str, str]) -> list[str]:
    """The short names of a channel's queues, a lane each, as their senders are called."""
    return sorted(url.rpartition("/")[2].removesuffix(".fifo") for url in urls.values())


def _of(channel: str, snapshot: Snapshot) -> list[QueueSnapshot]:
    """A channel's queues: its lanes', its retries', and the dead-letter queues of all of them."""
    names = ((each, each.name.removesuffix(".fifo")) for each in snapshot.queues)
    return [each for each, base in names if base == channel or base.startswith(f"{channel}-")]


def _row(
    channel: str,
    lanes: Sequence[str],
    snapshot: Snapshot,
    traffic: Mapping[str, list[int]],
    wrong: int,
    configured: ConfiguredStage,
    now: float,
) -> ChannelRow:
    queues = _of(channel, snapshot)
    alive = [each for each in queues if not is_dead(each.name)]
    nothing = [0] * BARS if traffic else []
    accepted = _sum(traffic[name] for name in lanes if name in traffic) or nothing
    rates = [each.rate for each in configured.lanes if each.channel == channel]
    limits = [each for each in rates if each is not None]
    recent = sum(accepted[-2:]) / (_PERIOD + now % _PERIOD) if accepted else None  # the last bar is not over
    return ChannelRow(
        channel,
        sum(queue.depth.visible + queue.depth.delayed for queue in alive),
        sum(queue.depth.in_flight for queue in alive),
        sum(queue.depth.all for queue in queues if is_dead(queue.name)),
        max((each.oldest_seconds for each in alive if each.oldest_seconds is not None), default=None),
        Plot(accepted, f"{sum(accepted):,} accepted") if accepted else None,
        wrong,
        recent,
        sum(limits) if limits and len(limits) == len(rates) else None,
    )


def _wrong(site: Site, channels: Sequence[str]) -> tuple[Counter[str], bool]:
    """How many went wrong in the last hour, by channel, as the page of failures counts them; and whether
    there are more."""
    now = site.clock()
    found = failed(site.client("dynamodb"), site.stage, now - 3600, now + AHEAD, list(channels), QUICK + 1)
    failures, more = newest(found, FailureFilter(), QUICK)
    return Counter(each.event_type for each in failures), more


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


def _outages(messages: Sequence[MessageStatus]) -> list[str]:
    """Return a sentence for each trouble that keeps many messages from being sent."""
    put_times = defaultdict[str, list[str]](list)
    for message in messages:
        if message.trouble:
            put_times[f"{message.event_type}: {message.trouble['message']}"].append(message.times["putAt"])
    return [
        f"{trouble}. {len(times):,} of the newest {len(messages):,} messages wait for that; the first was "
        f"put on {short(min(times))}."
        for trouble, times in put_times.items()
        if len(times) >= OUTAGE
    ]


def _sum(counts: Iterable[list[int]]) -> list[int]:
    return [sum(each) for each in zip(*counts, strict=True)]


def _traffic(site: Site, lanes: Mapping[str, Sequence[str]]) -> dict[str, list[int]]:
    """What CloudWatch counted in the last hour, a number for each bar: of what was accepted, by the
    queue's name. What it says nothing of is left out."""
    stage = {"Name": "stage", "Value": site.stage}
    asked = {
        name: ("Sent", {"Name": "service", "Value": f"send-{name.removeprefix(prefix(site.stage))}"})
        for names in lanes.values()
        for name in names
    }
    end = datetime.fromtimestamp(site.clock() // _PERIOD * _PERIOD + _PERIOD, UTC)
    start = end - timedelta(minutes=BAR_MINUTES * BARS)
    queries: list[Any] = [
        {
            "Id": f"q{at}",
            "MetricStat": {
                "Metric": {"Namespace": "Mailroom", "MetricName": metric, "Dimensions": [stage, dimension]},
                "Period": _PERIOD,
                "Stat": "Sum",
            },
        }
        for at, (metric, dimension) in enumerate(asked.values())
    ]
    try:
        answer = site.client("cloudwatch").get_metric_data(
            MetricDataQueries=queries, StartTime=start, EndTime=end, ScanBy="TimestampAscending"
        )
    except (ClientError, BotoCoreError):
        return {}  # the snapshot of the queues says that CloudWatch cannot be asked
    found = {each["Id"]: each for each in answer["MetricDataResults"] if each["Values"]}
    return {name: _bars(found[f"q{at}"], start) for at, name in enumerate(asked) if f"q{at}" in found}


def _bars(result: Mapping[str, Any], start: datetime) -> list[int]:
    counts = [0] * BARS
    for at, value in zip(result["Timestamps"], result["Values"], strict=True):
        bar = int((at - start).total_seconds() // _PERIOD)
        if 0 <= bar < BARS:
            counts[bar] += int(value)
    return counts
