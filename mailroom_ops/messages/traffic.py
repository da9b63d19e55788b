"""Metrics of a stage's channels in CloudWatch: for the last 24 hours, and for the newest minutes."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from mailroom.clock import iso
from mailroom_ops.shared.deployed_stage import prefix

if TYPE_CHECKING:
    from types_boto3_cloudwatch import CloudWatchClient

MINUTE, HOUR = 60, 3600
HOURS = 24
AGE = "ApproximateAgeOfOldestMessage"
NEWEST_MINUTES = 15
"""Number of last minutes that are searched for the newest value of a metric."""
PACE_MINUTES = 3
"""Number of last minutes of which the best one is shown as the pace: the values of the current minute are
incomplete and late."""
RATED = "mail"
"""Channel whose delivered, bounced and complained messages are counted: SES reviews accounts for them."""
Query = tuple[tuple[str, str], Any]
"""A channel and the name of a figure; and the metric and the statistic that CloudWatch has to return."""


class Hour(Struct, frozen=True):
    """Messages of an hour."""

    at: str
    """Start of the hour (ISO 8601)."""
    accepted: int
    wrong: int

    @property
    def all(self) -> int:
        """Number of all messages."""
        return self.accepted + self.wrong


class Traffic:
    """Figures of a stage's channels at `moment` (epoch seconds). There are none if CloudWatch cannot be read.
    `routes` has the URLs of queues, by channel and lane."""

    def __init__(
        self, client: "CloudWatchClient", stage: str, routes: Mapping[str, Mapping[str, str]], moment: float
    ) -> None:
        self._values = defaultdict[tuple[str, str], list[dict[float, float]]](list)
        self.routes, self.readable = routes, True
        queries: list[Query] = []
        for channel, lanes in routes.items():
            of_channel = {"channel": channel, "stage": stage}
            queries.append(_query(channel, "wrong", "Failed", of_channel, HOUR))
            if channel == RATED:
                feedback = {"service": "feedback", "stage": stage}
                queries.append(_query(channel, "delivered", "MailsDelivered", feedback, HOUR))
                for reason in ("bounced", "complained"):
                    of_reason = {**of_channel, "reason": reason}
                    queries.append(_query(channel, reason, "Failed", of_reason, HOUR))
            for lane, url in lanes.items():
                queue = url.rpartition("/")[2]
                name = f"send-{queue.removeprefix(prefix(stage)).removesuffix('.fifo')}"
                sender = {"service": name, "stage": stage}
                queries += [
                    _query(channel, "accepted", "Sent", sender, HOUR),
                    _query(channel, "resent", "Resent", sender, HOUR),
                    _query(channel, f"sent by {lane}", "Sent", sender),
                    _query(channel, "age", AGE, {"QueueName": queue}, stat="Maximum"),
                ]
                if lane == "normal":
                    for stat in ("p50", "p99"):
                        queries.append(_query(channel, stat, "PutToAccepted", sender, 5 * MINUTE, stat))
        of_hours = [query for query in queries if query[1]["Period"] == HOUR]
        of_minutes = [query for query in queries if query[1]["Period"] != HOUR]
        hour, self._minute = (moment // period * period for period in (HOUR, MINUTE))
        self._starts = [hour - back * HOUR for back in reversed(range(HOURS))]
        try:
            # Hours and minutes are read by two requests: CloudWatch bills each metric of a request, and the
            # whole day in minutes would be 1,440 values of each metric.
            self._read(client, of_hours, self._starts[0], hour + HOUR)
            self._read(client, of_minutes, self._minute - NEWEST_MINUTES * MINUTE, self._minute + MINUTE)
        except (ClientError, BotoCoreError):
            self.readable = False  # the snapshot, which reads CloudWatch too, reports the reason

    def hours(self) -> list[Hour]:
        """Return the hours of the last day, the oldest first; an empty list without figures."""
        accepted, wrong, starts = self._sum("accepted"), self._sum("wrong"), self._starts
        return [Hour(iso(start), int(accepted[start]), int(wrong[start])) for start in starts if self._values]

    def count(self, name: str, channel: str = "") -> int:
        """Return the sum of a figure, such as `accepted`: of one channel, or of all."""
        return int(self._sum(name, channel).total())

    def pace(self, channel: str, lane: str = "") -> float:
        """Return the messages a second that a channel sent in the best of the last minutes: all its lanes, or
        the lane of a name with the lane that helps it, such as `bulk` and `bulk-fallback`."""
        first = self._minute - PACE_MINUTES * MINUTE
        counts = self._sum(f"sent by {lane}", channel).items()
        return max((count for start, count in counts if start > first), default=0) / MINUTE

    def newest(self, channel: str, name: str) -> float | None:
        """Return the highest among the lanes' newest values of a figure, or None without values."""
        return max((values[max(values)] for values in self._values.get((channel, name), ())), default=None)

    def _sum(self, name: str, channel: str = "") -> Counter[float]:
        """Add up the values of the figures that begin with a name by time: of one channel, or of all."""
        total = Counter[float]()
        for (of_channel, figure), series in self._values.items():
            if figure.startswith(name) and channel in ("", of_channel):
                for values in series:
                    total.update(values)
        return total

    def _read(self, client: "CloudWatchClient", queries: list[Query], start: float, end: float) -> None:
        """Read the values between two times (epoch seconds)."""
        reply = client.get_metric_data(
            MetricDataQueries=[
                {"Id": f"q{index}", "MetricStat": metric} for index, (_, metric) in enumerate(queries)
            ],
            StartTime=datetime.fromtimestamp(start, UTC),
            EndTime=datetime.fromtimestamp(end, UTC),
        )
        for result in reply["MetricDataResults"]:
            values = zip(map(datetime.timestamp, result["Timestamps"]), result["Values"], strict=True)
            if result["Values"]:
                self._values[queries[int(result["Id"][1:])][0]].append(dict(values))


def end_at(messages: float, per_second: float, now_s: float) -> float:
    """Return the time (epoch seconds) at which the last of `messages` leaves, rounded up to a minute.
    Return infinity if no message leaves."""
    return math.ceil((now_s + messages / per_second) / MINUTE) * MINUTE if per_second else math.inf


def _query(
    channel: str, figure: str, name: str, dimensions: dict[str, str], period: int = MINUTE, stat: str = "Sum"
) -> Query:
    pairs = [{"Name": dimension, "Value": value} for dimension, value in dimensions.items()]
    namespace = "AWS/SQS" if name == AGE else "Mailroom"
    metric = {"Namespace": namespace, "MetricName": name, "Dimensions": pairs}
    return (channel, figure), {"Metric": metric, "Period": period, "Stat": stat}
