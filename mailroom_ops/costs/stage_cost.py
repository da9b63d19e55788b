"""Cost of a stage for a month without messages, in US dollars, by the resources of its templates."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mailroom.ledger.waits import LISTS_OF_CHANNEL, SHARDS
from mailroom_ops.costs import prices
from mailroom_ops.costs.message_cost import DAYS_A_MONTH

METRICS_OF_SENDER, METRICS_OF_SENDING = 4, 4
"""Numbers of custom metrics: for each channel that sends, and for each stage with at least one such
channel."""
METRICS_OF_STREAM = 6
"""Number of metrics that Lambda reports about a stream's event source mapping, priced as custom metrics. AWS
does not document whether Lambda reports them while the stream is idle."""
POLLS_A_MONTH = 5 * DAYS_A_MONTH * 86_400 / 20
"""Number of receive requests for a queue in a month: Lambda always has five long polls of 20 s open."""
ROUNDS_A_MONTH = DAYS_A_MONTH * 1440
ROUND = (2 * SHARDS + 1) * prices.READ_UNIT / 2
"""Price of an invocation of the function `release` without messages, which reads two lists of each shard, and
the names of channels. Reading an empty list costs half a unit. The function's time and its log, in an assumed
0.25 s with 512 MB, are less than a tenth of what is free in an account:
https://aws.amazon.com/lambda/pricing/."""
LOOK_AT_CHANNEL = prices.READ_UNIT + SHARDS * len(LISTS_OF_CHANNEL) * prices.READ_UNIT / 2
"""Price of reading the budget and the empty lists of a channel. The lists of channels that a stage does not
have are read once an hour, which is not included."""


def stage_parts(templates: Sequence[Mapping[str, Any]], senders: int = 0) -> dict[str, float]:
    """Return the monthly cost by part, in an account without other stages or applications, because AWS's free
    quantities are of an account. `senders` is the number of channels that send, and so have metrics."""
    resources = [resource for template in templates for resource in template["Resources"].values()]

    def properties_of(kind: str) -> list[Mapping[str, Any]]:
        return [
            resource.get("Properties", {}) for resource in resources if resource["Type"] == f"AWS::{kind}"
        ]

    # Functions poll the queues that have a redrive policy. Dead-letter queues have none.
    queues = sum("RedrivePolicy" in queue for queue in properties_of("SQS::Queue"))
    alarm_metrics = sum(map(_metrics, properties_of("CloudWatch::Alarm")))
    streams = sum("MetricsConfig" in mapping for mapping in properties_of("Lambda::EventSourceMapping"))
    keys = properties_of("KMS::Key")
    rotated = sum(bool(key.get("EnableKeyRotation")) for key in keys)
    functions = properties_of("Lambda::Function")
    variables = [function.get("Environment", {}).get("Variables", {}) for function in functions]
    channels = sum(len(json.loads(names.get("LINES", "{}"))) for names in variables)
    # `release` reports its lateness each minute, even if no message waits.
    metrics = 1 + (METRICS_OF_SENDING + senders * METRICS_OF_SENDER if senders else 0)
    return {
        "alarms": max(0, alarm_metrics - prices.FREE_ALARMS) * prices.ALARM,
        "dashboards": max(0, len(properties_of("CloudWatch::Dashboard")) - prices.FREE_DASHBOARDS)
        * prices.DASHBOARD,
        "metrics": max(0, streams * METRICS_OF_STREAM + metrics - prices.FREE_METRICS) * prices.CUSTOM_METRIC,
        "polling of queues": max(0, queues * POLLS_A_MONTH - prices.FREE_SQS_REQUESTS) * prices.SQS_REQUEST,
        "rounds of release": (ROUND + channels * LOOK_AT_CHANNEL) * ROUNDS_A_MONTH,
        "keys": (len(keys) + rotated * prices.KEY_ROTATIONS) * prices.KEY,
        "secrets": len(properties_of("SecretsManager::Secret")) * prices.SECRET,
    }


def _metrics(alarm: Mapping[str, Any]) -> int:
    """Return the number of metrics for which an alarm is charged. An alarm on an expression is charged for
    each metric in it."""
    return sum("MetricStat" in metric for metric in alarm.get("Metrics", [])) or 1
