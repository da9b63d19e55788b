"""What messages cost on AWS, by the part: list prices, and how often each is paid a message."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from stacks.paths import ROOT

DATED = "us-east-1 list prices of 2026-11, arm64"

WRITE_UNIT = 0.625e-6
READ_UNIT = 0.125e-6
SQS_REQUEST = 0.40e-6
SQS_FIFO_REQUEST = 0.50e-6
LAMBDA_REQUEST = 0.20e-6
LAMBDA_GB_SECOND = 0.0000133334
SES_PLANS = {"none": 100e-6, "essentials": 160e-6}
"""A mail, by the plan of the account (`PricingAttributes` of SES's GetAccount); there are plans since
2026-07-21. The price of Essentials is from a copy of AWS's price list; the others are not known here."""
SES_MAIL = SES_PLANS["none"]
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

_DIFFERS = "it differs by country, provider and contract"


@dataclass(frozen=True)
class ChannelEstimate:
    """What one message of a channel takes. The defaults hold for a channel that has no row in CHANNELS."""

    latency: float = 0.1
    """Seconds in a sender with a whole vCPU: the provider's answer and the ledger's writes."""
    computing: float = 0.005
    """Seconds of these that take the vCPU, as the bench measures them for a mail (`cpu_ms_a_mail`)."""
    provider: str = ""
    """Who sends it, where that has one price; `price` is that price in US dollars."""
    price: float = 0.0
    unpriced: str = "its price is not known here"
    """Why the provider's price is not included; "": it is, or nobody takes one."""
    ledger_units: Callable[[], float] = lambda: 2.0
    """Write units of the ledger: the claim and the completion. Measured ones are read when asked."""
    suppressible: bool = False
    """Whether its sender looks its recipients up in the suppression list."""
    events: int = 0
    """Events that the provider sends about it."""
    events_apart: bool = False
    """Whether these come too far apart to be written together."""
    events_by_twilio: bool = False
    """Whether Twilio, where the stage has it, sends them by calling the API."""
    callbacks: int = 1
    """Callbacks to its `callback_url` where all goes well."""
    indexed: bool = False
    """Whether the ledger's index of numbers has an entry for it."""
    stores_pdf: bool = False
    note: str = ""
    """What a plan cannot know of the channel."""


_FIGURES = ROOT / "bench" / "results.json"


@cache
def measured() -> dict[str, Any]:
    """What the bench counted and measured."""
    figures: dict[str, Any] = json.loads(_FIGURES.read_text())
    return figures


CHANNELS = {
    "mail": ChannelEstimate(
        provider="SES",
        price=SES_MAIL,
        unpriced="",
        ledger_units=lambda: float(measured()["write_units_per_mail"]),
        suppressible=True,
        events=2,
        callbacks=2,
        note="SES counts recipients, and has a quota of 24 hours, which is not known here.",
    ),
    "sms": ChannelEstimate(
        latency=0.3,
        unpriced=_DIFFERS,
        ledger_units=lambda: 3.0,  # the index of numbers is written as well
        suppressible=True,
        events=3,
        events_apart=True,
        events_by_twilio=True,
        callbacks=2,
        indexed=True,
    ),
    "push": ChannelEstimate(
        unpriced="SNS has a free allowance, which the account may have used up", suppressible=True
    ),
    "fax": ChannelEstimate(
        latency=60.0,  # the whole call
        unpriced=_DIFFERS,
        ledger_units=lambda: float(measured()["fax_ledger_units"]["short"]),
        indexed=True,
        stores_pdf=True,
        note="A number gets one fax at a time, so many to the same take longer; so do further attempts.",
    ),
    "webhook": ChannelEstimate(latency=0.3, unpriced=""),
}
"""A row for each channel about which more is known than the defaults say."""

BETWEEN = 0.1
"""Seconds from one invocation of a function to its next, where nobody says otherwise."""
DISPATCHED = 100
"""Items of the mailbox that dispatch takes at once, where there is much to do."""
QUEUED = 10
"""Messages that it puts into a queue at once."""
UNREAD = 0.5
"""Read units of an item that is asked for, there or not: eventually consistent."""


def estimate_of(channel: str) -> ChannelEstimate:
    """The channel's row, or the defaults."""
    return CHANNELS.get(channel, ChannelEstimate())


def writes_of_event(channel: str, *, bulk: bool) -> float:
    """Write units of the ledger for one event of a provider. Where a campaign goes out, and where a phone
    answers, one message's events come apart; others may come together, and are one write then."""
    writes = measured()["feedback_writes_per_event"]
    return float(writes["apart" if bulk or estimate_of(channel).events_apart else "together"])


def lambda_time(seconds: float, memory_mb: float) -> float:
    return seconds * memory_mb / 1024 * LAMBDA_GB_SECOND
