"""Cost of a stage for a month without messages, in US dollars."""

from msgspec import Struct

from mailroom.ledger.waits import SHARDS
from mailroom_ops.costs import prices
from mailroom_ops.costs.message_cost import DAYS_A_MONTH
from mailroom_stacks.settings.settings import Settings

ALARMS_OF_QUEUE = 5
ALARMS_OF_FUNCTION = 1
ALARMS_OF_STREAM = 3
ALARMS_OF_SES = 8
ALARMS_OF_STAGE = 8
"""Metrics that the alarms watch of each queue, function and stream, of SES, and of the rest of a stage."""
FUNCTIONS_WITHOUT_QUEUE = ("dispatch", "outcomes", "release", "dead-letters", "messages-api", "unsubscribe")
METRICS_OF_SENDER, METRICS_OF_SENDING = 4, 3
"""Custom metrics of each channel that sends, and of a stage that sends at all."""
METRICS_OF_STREAM = 6
"""Metrics that Lambda reports of a stream's mapping, priced as custom metrics. AWS does not document whether
Lambda reports them while no record comes."""
DASHBOARDS = 2
KEYS = 2
"""Keys of two topics: of the alarms, and of the events from SES."""
POLLS_A_MONTH = 5 * DAYS_A_MONTH * 86_400 / 20
"""Requests for messages of a queue: Lambda keeps five long polls of 20 s open, day and night."""
ROUNDS_A_MONTH = DAYS_A_MONTH * 1440
ROUND = prices.invocation_part(0.05, 512) + 2 * prices.WRITE_UNIT
"""Price of an idle round of `release`: an assumed 0.05 s, and the writes of its lease."""


class StageResources(Struct, frozen=True):
    """Numbers of the resources of a stage that are paid by the month."""

    queues: int
    """Queues that functions read, so without dead-letter queues."""
    alarm_metrics: int
    mapping_metrics: int
    dashboards: int
    keys: int
    rotated_keys: int
    secrets: int
    rounds: int
    """Rounds of `release` each minute: one for each shard of the due messages, and one for each channel."""


def resources_of(settings: Settings) -> StageResources:
    """Count a stage's resources by its settings."""
    fax, campaigns = settings.fax is not None, bool(settings.campaigns.enabled)
    rows = list(settings.lane_rows())
    queues = len(rows) + 2 + 2 * fax + 2 * campaigns
    by_resend, full = settings.mail.provider == "resend", settings.monitoring.is_full
    calls = (settings.twilio is not None) + by_resend
    functions = queues + len(FUNCTIONS_WITHOUT_QUEUE) + calls + settings.search
    streams = 2 + settings.search
    # The alarms of the day's quota: one for codes that wait, and two for bulk that waits.
    codes = sum(row.lane == "normal" and settings.has_day(row.event_type) for row in rows)
    bulk = sum(row.lane == "bulk" and bool(row.channel.days) for row in rows)
    alarms = (
        functions * ALARMS_OF_FUNCTION
        + streams * ALARMS_OF_STREAM
        + (not by_resend) * ALARMS_OF_SES
        + ALARMS_OF_STAGE
        + codes
        + 2 * bulk
        + 2 * settings.monitoring.canary * sum(row.lane == "normal" for row in rows)
    )
    return StageResources(
        queues=queues,
        alarm_metrics=queues * ALARMS_OF_QUEUE + settings.monitoring.canary + full * alarms,
        mapping_metrics=full * streams * METRICS_OF_STREAM,
        dashboards=full * DASHBOARDS,
        keys=KEYS,
        rotated_keys=full * KEYS,
        secrets=2 + settings.search + len(settings.provider_secrets),
        rounds=SHARDS + len(settings.channels),
    )


def stage_parts(resources: StageResources, senders: int = 0) -> dict[str, float]:
    """Return the cost of a month by part. `senders` is the number of channels that send, and so have
    metrics."""
    # `release` reports its lateness each minute, also if no message waits.
    metrics = 1 + (METRICS_OF_SENDING + senders * METRICS_OF_SENDER if senders else 0)
    return {
        "alarms": max(0, resources.alarm_metrics - prices.FREE_ALARMS) * prices.ALARM,
        "dashboards": resources.dashboards * prices.DASHBOARD,
        "metrics": (resources.mapping_metrics + metrics) * prices.CUSTOM_METRIC,
        "polling of queues": resources.queues * POLLS_A_MONTH * prices.SQS_REQUEST,
        "rounds of release": resources.rounds * ROUNDS_A_MONTH * ROUND,
        "keys": (resources.keys + resources.rotated_keys * prices.KEY_ROTATIONS) * prices.KEY,
        "secrets": resources.secrets * prices.SECRET,
    }
