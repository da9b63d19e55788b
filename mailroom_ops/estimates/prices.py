"""What messages cost on AWS, by the part: list prices, and how often each is paid a message."""

from msgspec import structs

from mailroom.channels.channel import Estimate
from mailroom.channels.contracts import CHANNELS

DATED = "us-east-1 list prices of 2026-11, arm64"

WRITE_UNIT = 0.625e-6
READ_UNIT = 0.125e-6
SQS_REQUEST = 0.40e-6
SQS_FIFO_REQUEST = 0.50e-6
LAMBDA_REQUEST = 0.20e-6
LAMBDA_GB_SECOND = 0.0000133334
SES_MAIL = CHANNELS["mail"].estimate.price
SES_PLANS = {"none": SES_MAIL, "essentials": 160e-6}
"""A mail, by the plan of the account (`PricingAttributes` of SES's GetAccount); there are plans since
2026-07-21. The price of Essentials is from a copy of AWS's price list; the others are not known here."""
SNS_PUBLISH = 0.50e-6
BUS_EVENT = 1.00e-6
HTTP_API_REQUEST = 1.00e-6
S3_PUT = 5.0e-6
S3_GET = 0.40e-6
"""US dollars each; DynamoDB's are on demand, of up to 1 KB written and 4 KB read."""

TABLE_GB = 0.25
RECOVERY_GB = 0.20
BUCKET_GB = 0.023
LOGGED_GB = 0.50
KEPT_LOG_GB = 0.03
OUT_GB = 0.09
"""US dollars a GB: kept for a month in tables, in their backups and in buckets; written to logs; kept there
for a month, before CloudWatch compresses them; sent out."""

ALARM = 0.10
CUSTOM_METRIC = 0.30
DASHBOARD = 3.00
KEY = 1.00
SECRET = 0.40
"""US dollars a month each; an alarm costs its price once for each metric that it watches."""
KEY_ROTATIONS = 2
"""A key's first and second yearly rotation add its price once more each; further ones add nothing:
https://aws.amazon.com/kms/pricing/."""
FREE_ALARMS = 10
"""Metrics of alarms a month that an account has free."""

LEDGER_BYTES = 396
"""The ledger's item of a mail that was sent, as `make bench` counts it (`ledger_item_bytes`)."""
WRITES_OF_EVENT, WRITES_OF_LONE_EVENT = 0.57, 0.99
"""Write units of the ledger for one event of a provider: where a message's delivery comes within a batch of
its other events, which are then one write, and where each event comes alone. Counted in November 2026 on
SES's events in batches, in any order, some of them twice."""
BETWEEN = 0.1
"""Seconds from one invocation of a function to its next, where nobody says otherwise."""
HOLD_WRITES, HAND_OVER_WRITES = 2, 2
"""Write units of a wait: the ledger's item and its entry in the index `waiting`, once written and once
removed."""
RELEASE_SECONDS, RELEASE_MB = 0.010, 512
"""Seconds of `release` for a message with the usual memory: 3 ms of a whole vCPU, by `bench/waiting.py`."""
DISPATCHED = 100
"""Items of the mailbox that dispatch takes at once, where there is much to do."""
QUEUED = 10
"""Messages that it puts into a queue at once."""
UNREAD = 0.5
"""Read units of an item that is asked for, there or not: eventually consistent."""


BY_RESEND = structs.replace(
    CHANNELS["mail"].estimate,
    provider="",
    price=0.0,
    unpriced="Resend's differs by plan",
    note="Resend has quotas of the day and of the month: see channels.mail.per_day.",
)
"""A mail that Resend sends."""


def estimate_of(channel: str) -> Estimate:
    """The channel's row, or the defaults."""
    return CHANNELS[channel].estimate if channel in CHANNELS else Estimate()


def writes_of_event(channel: str, *, bulk: bool) -> float:
    """Write units of the ledger for one event of a provider. Where a campaign goes out, and where a phone
    answers, one message's events come apart; others may come together, and are one write then."""
    return WRITES_OF_LONE_EVENT if bulk or estimate_of(channel).events_apart else WRITES_OF_EVENT


def lambda_time(seconds: float, memory_mb: float) -> float:
    return seconds * memory_mb / 1024 * LAMBDA_GB_SECOND
