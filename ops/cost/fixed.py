"""What a stage costs where nothing is sent."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from msgspec import Struct

from ops import prices
from ops.cost import assumed
from stacks.settings.stage import Settings

ALARMS_A_QUEUE = {"dlq-not-empty": 2, "waiting-long": 1, "backlog-old": 1, "in-flight-many": 1}
ALARMS_A_FUNCTION = {"errors": 1, "throttles": 1, "slow": 1}
ALARMS_BESIDE = {
    "gave-up": 2,
    "dropped": 2,
    "iterator-age": 2,
    "api-5xx": 1,
    "concurrency": 1,
    "webhooks-failing": 1,
    "ses-bounce-rate": 2,
    "ses-complaint-rate": 2,
}
"""Metrics that alarms watch, by the kinds of alarm: each is paid for."""
FUNCTIONS_BESIDE = ("dispatch", "outcomes", "dead-letters", "messages-api", "unsubscribe")
"""Those that read no queue."""
_KEYS = 2  # the topics': those that SES and CloudWatch publish to


class Resources(Struct, frozen=True):
    """What is paid for by the month. `source`: worked out from the settings, or counted in the templates."""

    source: Literal["settings", "templates"]
    queues: int
    fifo_queues: int
    functions: int
    alarm_metrics: int
    dashboards: int
    keys: int
    secrets: int


def of_settings(settings: Settings) -> Resources:
    """A stage's as its settings make them. Dead-letter queues are not among the queues: nobody reads them."""
    fax, campaigns = settings.fax is not None, bool(settings.campaigns.enabled)
    queues = len(list(settings.lane_rows())) + 3 + 2 * fax + 2 * campaigns
    functions = queues + len(FUNCTIONS_BESIDE) + (settings.twilio is not None)
    return Resources(
        source="settings",
        queues=queues,
        fifo_queues=int(fax),
        functions=functions,
        alarm_metrics=queues * sum(ALARMS_A_QUEUE.values())
        + functions * sum(ALARMS_A_FUNCTION.values())
        + sum(ALARMS_BESIDE.values()),
        dashboards=1,
        keys=_KEYS,
        secrets=2 + fax + (settings.twilio is not None) + (settings.webhook.stage_key_until is not None),
    )


def of_templates(templates: Iterable[Mapping[str, Any]]) -> Resources:
    """A stage's as CloudFormation would make them."""
    resources = [each for template in templates for each in template.get("Resources", {}).values()]
    by_type: dict[str, list[Mapping[str, Any]]] = {}
    for each in resources:
        by_type.setdefault(each["Type"], []).append(each.get("Properties", {}))
    # Those with a redrive policy have a dead-letter queue, and so a function that reads them.
    queues = [each for each in by_type.get("AWS::SQS::Queue", []) if "RedrivePolicy" in each]
    return Resources(
        source="templates",
        queues=len(queues),
        fifo_queues=sum(bool(each.get("FifoQueue")) for each in queues),
        functions=len(by_type.get("AWS::Lambda::Function", [])),
        alarm_metrics=sum(_metrics(each) for each in by_type.get("AWS::CloudWatch::Alarm", [])),
        dashboards=len(by_type.get("AWS::CloudWatch::Dashboard", [])),
        keys=len(by_type.get("AWS::KMS::Key", [])),
        secrets=len(by_type.get("AWS::SecretsManager::Secret", [])),
    )


def dollars(resources: Resources, senders: int) -> dict[str, float]:
    """What they cost a month; `senders` are the functions that have something to send, and so to count."""
    polls = assumed.POLLS * assumed.DAYS * 86_400 / assumed.POLL_SECONDS
    standard = resources.queues - resources.fifo_queues
    metrics = senders * assumed.METRICS_A_SENDER + assumed.METRICS_BESIDE if senders else 0
    return {
        "alarms": max(0, resources.alarm_metrics - prices.FREE_ALARMS) * prices.ALARM,
        "dashboard": resources.dashboards * prices.DASHBOARD,
        "custom metrics": metrics * prices.CUSTOM_METRIC,
        "polling of queues": polls
        * (standard * prices.SQS_REQUEST + resources.fifo_queues * prices.SQS_FIFO_REQUEST),
        "keys": resources.keys * prices.KEY,
        "secrets": resources.secrets * prices.SECRET,
    }


def _metrics(alarm: Mapping[str, Any]) -> int:
    """An alarm on an expression pays for each metric in it."""
    return sum("MetricStat" in each for each in alarm.get("Metrics", [])) or 1
