"""The overview: a channel a row, what its queues hold, what it sent in the last hour, and what rings."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from ops.console.site import KEPT_SECONDS, Answer, Asked, Shown, Site
from ops.console.snapshot import QueueSnapshot, Snapshot, Watcher
from ops.doctor.stage import ConfiguredStage
from ops.requeue.stage import DeployedStage
from ops.stage import is_dead, prefix
from ops.times import speed_of

SNAPSHOT_SECONDS = 4.0
"""Several tabs share a look at the queues. The plots are kept for longer, where CloudWatch bills a look."""
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
    """One channel. `accepted` and `failed` None: CloudWatch has no figures. `limit`: messages a second that
    the settings allow (None: no limit, or the settings are not here); `pace`: those of the last minutes."""

    channel: str
    waiting: int
    in_flight: int
    dead: int
    oldest_seconds: float | None
    accepted: Plot | None
    failed: Plot | None
    pace: float | None
    limit: float | None

    @property
    def pace_words(self) -> str:
        """Both in a sentence."""
        limit = "no limit" if self.limit is None else f"limit {speed_of(self.limit)} a second"
        if self.pace is None:
            return limit
        pace = "under 0.1" if 0 < self.pace < 0.1 else speed_of(self.pace)
        return f"{pace} a second, {limit}"


def show(site: Site, _: Asked) -> Answer:
    """The page. Raises NotDeployed, and botocore's errors."""
    deployed = site.kept("deployed", lambda: DeployedStage.of(site.session, site.stage))
    watcher = site.kept("watcher", lambda: Watcher(site.session, site.stage), seconds=86_400)
    snapshot = site.kept("snapshot", lambda: watcher.look(site.clock()), SNAPSHOT_SECONDS)
    lanes = {channel: _names(urls) for channel, urls in deployed.dispatch.routes.items()}
    seconds = SNAPSHOT_SECONDS if site.stage == "local" else KEPT_SECONDS
    traffic = site.kept("traffic", partial(_traffic, site, lanes), seconds)
    configured = site.kept("configured", lambda: ConfiguredStage.read(site.stage))
    rows = [
        _row(channel, names, snapshot, traffic, configured, site.clock()) for channel, names in lanes.items()
    ]
    named = {each.name for row in lanes for each in _of(row, snapshot)}
    others = [each for each in snapshot.queues if each.name not in named]
    measured = any(row.accepted for row in rows)
    return Shown(
        template="overview.html",
        values={"snapshot": snapshot, "rows": rows, "others": others, "measured": measured},
    )


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
    configured: ConfiguredStage,
    now: float,
) -> ChannelRow:
    queues = _of(channel, snapshot)
    alive = [each for each in queues if not is_dead(each.name)]
    nothing = [0] * BARS if traffic else []
    accepted = _sum(traffic[name] for name in lanes if name in traffic) or nothing
    failed = traffic.get(f"failed {channel}", nothing)
    rates = [each.senders.rate for each in configured.lanes if each.channel == channel]
    limits = [each for each in rates if each is not None]
    recent = sum(accepted[-2:]) / (_PERIOD + now % _PERIOD) if accepted else None  # the last bar is not over
    return ChannelRow(
        channel,
        sum(each.visible + each.delayed for each in alive),
        sum(each.in_flight for each in alive),
        sum(each.holds for each in queues if is_dead(each.name)),
        max((each.oldest_seconds for each in alive if each.oldest_seconds is not None), default=None),
        _plot(accepted, "accepted") if accepted else None,
        _plot(failed, "failed") if failed else None,
        recent,
        sum(limits) if limits and len(limits) == len(rates) else None,
    )


def _sum(counts: Iterable[list[int]]) -> list[int]:
    return [sum(each) for each in zip(*counts, strict=True)]


def _plot(counts: list[int], verb: str) -> Plot:
    return Plot(counts, f"{sum(counts):,} {verb}")


def _traffic(site: Site, lanes: Mapping[str, Sequence[str]]) -> dict[str, list[int]]:
    """What CloudWatch counted in the last hour, a number for each bar: of what was accepted by the queue's
    name, of what failed by `failed` and the channel. What it says nothing of is left out."""
    stage = {"Name": "stage", "Value": site.stage}
    asked = {
        **{
            name: ("Sent", {"Name": "service", "Value": f"send-{name.removeprefix(prefix(site.stage))}"})
            for names in lanes.values()
            for name in names
        },
        **{f"failed {each}": ("Failed", {"Name": "channel", "Value": each}) for each in lanes},
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
