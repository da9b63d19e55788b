"""Metrics of a stage, and the alarms of its dead-letter queues, as constructs for any dashboard."""

from collections.abc import Sequence

from aws_cdk.aws_cloudwatch import IAlarm, IMetric, MathExpression, SearchExpression
from constructs import IConstruct

from mailroom_stacks.constructs.function import function_specs
from mailroom_stacks.constructs.stage_alarm import StageAlarm, counted, stage_alarms
from mailroom_stacks.constructs.worker import Work
from mailroom_stacks.settings.settings import Settings

WORST = 3
"""Number of lines of a graph that leaves out all others. CloudWatch sorts and numbers their labels:
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/using-metric-math.html, read on 2026-11-30."""
UNFINISHED = ("Retried", "Misconfigured", "Unknown", "Resent")
"""Metrics of tries that are retried, whose outcome is unknown, or that follow a try of unknown outcome."""


def dead_letter_alarms(stage: IConstruct) -> list[IAlarm]:
    """Return the alarms of all dead-letter queues of a stage. They are imported by name, so the stack of a
    dashboard does not depend on a stack of the stage."""
    return [alarm.by_name for alarm in of_kind(stage, "dlq-not-empty")]


def of_kind(stage: IConstruct, *kinds: str) -> list[StageAlarm]:
    """Return the alarms of these kinds in the stage that `stage` is or belongs to."""
    return [alarm for alarm in stage_alarms(stage) if alarm.about.kind in kinds]


class StageMetrics:
    """Metrics of a stage with labels. Each method returns the metrics for one graph."""

    def __init__(self, stage: IConstruct, settings: Settings) -> None:
        self._stage, self._settings = stage, settings
        self._senders = [spec for spec in function_specs(stage) if isinstance(spec, Work) and spec.channel]

    def codes(self) -> list[IMetric]:
        """Return the p50 and p99 of the time in which messages of normal lanes are accepted, in milliseconds:
        from the put, or from the time when they were due, until their provider has accepted them."""
        return [
            counted(self._settings, row.function, "PutToAccepted", stat).with_(label=f"{row.queue} {stat}")
            for row in self._settings.lane_rows()
            if row.lane == "normal"
            for stat in ("p50", "p99")
        ]

    def accepted(self) -> list[IMetric]:
        """Return the number of messages that providers accepted, for each lane of each channel."""
        return [
            counted(self._settings, sender.function, "Sent").with_(label=sender.queue)
            for sender in self._senders
        ]

    def failed(self) -> list[IMetric]:
        """Return the number of messages that failed, by channel."""
        return [self._search("channel", 'MetricName="Failed"', "${PROP('Dim.channel')} failed")]

    def failed_by_reason(self) -> list[IMetric]:
        """Return the number of messages that failed, by channel and by the ledger's `error.code`."""
        label = "${PROP('Dim.channel')} ${PROP('Dim.reason')}"
        return [self._search("channel,reason", 'MetricName="Failed"', label)]

    def unfinished(self) -> list[IMetric]:
        """Return the number of tries that are retried, whose outcome is unknown, or that follow a try of
        unknown outcome, by sender."""
        return [self._search("service", _any("MetricName", UNFINISHED), COUNT)]

    def days(self) -> list[IMetric]:
        """Return the number of accepted messages since the beginning of the displayed time range, for each
        channel with a daily limit. Messages that a second provider accepted do not count towards it."""
        rows = [row for row in self._settings.lane_rows() if row.channel.days and not row.fallback]
        return [
            self._search(
                "service",
                f'MetricName="Sent" {_any("service", functions)}',
                f"{channel} accepted",
                "RUNNING_SUM(SUM({}))",
            )
            for channel in dict.fromkeys(row.event_type for row in rows)
            for functions in [[row.function for row in rows if row.event_type == channel]]
        ]

    def letters(self) -> list[IMetric]:
        """Return the number of dead letters, by queue."""
        return [alarm.labelled() for alarm in of_kind(self._stage, "dlq-not-empty")]

    def shares(self, kind: str) -> list[MathExpression]:
        """Return the metrics of all alarms of a kind, as percentages of their thresholds."""
        return [alarm.share() for alarm in of_kind(self._stage, kind)]

    def worst(self, kind: str) -> list[IMetric]:
        """Return the WORST of the metrics of `shares` by their maximum in the displayed time range."""
        shares = {f"share_{index}": share for index, share in enumerate(self.shares(kind))}
        expression = f"SORT([{', '.join(shares)}], MAX, DESC, {WORST})"
        # Without a label of its own, the expression shows those of the metrics.
        return [MathExpression(expression=expression, using_metrics=shares, label="")]

    def _search(self, dimensions: str, term: str, label: str, around: str = "{}") -> SearchExpression:
        """Build a search among Mailroom's own metrics of this stage. `around` is an expression that contains
        {} for the search.

        AWS's metrics lack the dimension `stage`: a search for mailroom-dev would also match mailroom-dev2.
        """
        schema = f"{{Mailroom,{dimensions},stage}}"
        search = f"SEARCH('{schema} {term} stage=\"{self._settings.stage}\"', 'Sum', 300)"
        return SearchExpression(expression=around.format(search), label=label)


COUNT = "${PROP('Dim.service')} ${PROP('MetricName')}"


def _any(name: str, values: Sequence[str]) -> str:
    """Return the search term that matches any of `values`."""
    terms = " OR ".join(f'{name}="{value}"' for value in values)
    return f"({terms})"
