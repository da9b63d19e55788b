"""What a stage costs where nothing is sent."""

from msgspec import Struct

from mailroom.ledger.waits import SHARDS
from mailroom_ops.cost import parts
from mailroom_ops.estimates import prices
from mailroom_stacks.settings.stage import Settings

ALARMS_A_QUEUE = {"dlq-not-empty": 2, "waiting-long": 1, "backlog-old": 1, "in-flight-many": 1}
ALARMS_A_FUNCTION = {"errors": 1, "throttles": 1, "slow": 1}
ALARMS_BESIDE = {
    "api-5xx": 1,
    "concurrency": 1,
    "webhooks-failing": 1,
    "release-late": 1,
}
"""Metrics that alarms watch, by the kinds of alarm: each is paid for."""
ALARMS_OF_SES = {"ses-bounce-rate": 4, "ses-complaint-rate": 4}
ALARMS_A_STREAM = {"gave-up": 1, "dropped": 1, "iterator-age": 1}
FUNCTIONS_BESIDE = ("dispatch", "outcomes", "release", "dead-letters", "messages-api", "unsubscribe")
"""Functions that read no queue."""
METRICS_A_SENDER, METRICS_BESIDE = 4, 3
"""Custom metrics of a stage where all goes well; each further name costs as much."""
ROUND_SECONDS, ROUND_MB = 0.05, 512
"""Assumed seconds of an idle round of `release`, and its usual memory."""
LEASE_WRITES = 2
"""Write units of a round: its lease is taken and given back."""
METRICS_A_MAPPING = 6
"""Metrics of EventCount that Lambda has for a stream, by its developer guide. Each costs what a custom metric
does; whether Lambda reports them while nothing comes is not documented."""
_READERS = ("dispatch", "outcomes")
"""Functions that read a stream; another one reads the ledger's for search."""
_KEYS = 2  # the topics': those that SES and CloudWatch publish to


class Resources(Struct, frozen=True):
    """What is paid for by the month."""

    queues: int
    fifo_queues: int
    functions: int
    alarm_metrics: int
    mapping_metrics: int
    dashboards: int
    keys: int
    rotated_keys: int
    secrets: int
    rounds: int
    """Rounds of `release` each minute: one for each shard of what is due, and one for each line."""


def of_settings(settings: Settings) -> Resources:
    """A stage's as its settings make them. Dead-letter queues are not among the queues: nobody reads them."""
    fax, campaigns = settings.fax is not None, bool(settings.campaigns.enabled)
    queues = len(list(settings.lane_rows())) + 2 + 2 * fax + 2 * campaigns
    search = settings.search
    by_resend = settings.mail.provider == "resend"
    functions = queues + len(FUNCTIONS_BESIDE) + (settings.twilio is not None) + by_resend + search
    readers = len(_READERS) + search
    full = settings.monitoring.is_full
    others = functions * sum(ALARMS_A_FUNCTION.values()) + readers * sum(ALARMS_A_STREAM.values())
    others += sum(ALARMS_BESIDE.values()) + _of_days(settings)
    others += 0 if by_resend else sum(ALARMS_OF_SES.values())
    return Resources(
        queues=queues,
        fifo_queues=int(fax),
        functions=functions,
        alarm_metrics=queues * sum(ALARMS_A_QUEUE.values()) + full * others,
        mapping_metrics=full * readers * METRICS_A_MAPPING,
        dashboards=int(full),
        keys=_KEYS,
        rotated_keys=full * _KEYS,
        secrets=2 + search + len(settings.provider_secrets),
        rounds=SHARDS + len(settings.channels),
    )


def _of_days(settings: Settings) -> int:
    """Metrics that the alarms of the day's quota watch: codes that wait; bulk's messages and pages."""
    rows = [*settings.lane_rows()]
    codes = sum(1 for row in rows if row.lane == "normal" and settings.has_day(row.event_type))
    return codes + sum(2 for row in rows if row.lane == "bulk" and row.channel.days)


def dollars(resources: Resources, senders: int) -> dict[str, float]:
    """What they cost a month; `senders` are the functions that have something to send, and so to count."""
    polls = parts.POLLS * parts.DAYS * 86_400 / parts.POLL_SECONDS
    standard = resources.queues - resources.fifo_queues
    # Each round reports its lateness, also if nothing waits.
    metrics = bool(resources.rounds) + (senders * METRICS_A_SENDER + METRICS_BESIDE if senders else 0)
    return {
        "alarms": max(0, resources.alarm_metrics - prices.FREE_ALARMS) * prices.ALARM,
        "dashboard": resources.dashboards * prices.DASHBOARD,
        "custom metrics": metrics * prices.CUSTOM_METRIC,
        "metrics of mappings": resources.mapping_metrics * prices.CUSTOM_METRIC,
        "polling of queues": polls
        * (standard * prices.SQS_REQUEST + resources.fifo_queues * prices.SQS_FIFO_REQUEST),
        "rounds of release": _rounds_cost(resources.rounds),
        "keys": resources.keys * prices.KEY,
        "rotation of keys": resources.rotated_keys * prices.KEY_ROTATIONS * prices.KEY,
        "secrets": resources.secrets * prices.SECRET,
    }


def _rounds_cost(rounds: int) -> float:
    """Return the cost of the rounds of a month in an idle stage. The round of a line reads the day, the depth
    of the lane's queue and each shard of the line."""
    lines = max(0, rounds - SHARDS)
    queries = rounds - lines + lines * SHARDS
    price = prices.LAMBDA_REQUEST + prices.lambda_time(ROUND_SECONDS, ROUND_MB)
    price += LEASE_WRITES * prices.WRITE_UNIT
    log_price = parts.LOG_BYTES / parts.GB * prices.LOGGED_GB
    reads = (queries * prices.UNREAD + lines) * prices.READ_UNIT
    a_minute = rounds * (price + log_price) + reads + lines * prices.SQS_REQUEST
    return a_minute * parts.DAYS * 1440
