"""What messages cost on AWS, by the part: list prices, and how often each is paid a message."""

import json
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
SES_MAIL = 100e-6
SNS_PUBLISH = 0.50e-6
HTTP_API_REQUEST = 1.00e-6
S3_PUT = 5.0e-6
S3_GET = 0.40e-6
"""US dollars each; DynamoDB's are on demand, of up to 1 KB written and 4 KB read."""

TABLE_GB = 0.25
RECOVERY_GB = 0.20
BUCKET_GB = 0.023
LOGGED_GB = 0.50
OUT_GB = 0.09
"""US dollars a GB: kept for a month in tables, in their backups and in buckets; written to logs; sent out."""

ALARM = 0.10
CUSTOM_METRIC = 0.30
DASHBOARD = 3.00
KEY = 1.00
SECRET = 0.40
"""US dollars a month each; an alarm costs its price once for each metric that it watches."""
FREE_ALARMS = 10
"""Metrics of alarms a month that an account has free."""

PROVIDERS = {"mail": ("SES", SES_MAIL)}
"""Who sends, where that has one price."""
UNPRICED = {
    "sms": "it differs by country, provider and contract",
    "fax": "it differs by country, provider and contract",
    "push": "SNS has a free allowance, which the account may have used up",
}
"""Why there is none for others; it is not guessed."""

DISPATCHED = 100
"""Items of the mailbox that dispatch takes at once, where there is much to do."""
QUEUED = 10
"""Messages that it puts into a queue at once."""
UNREAD = 0.5
"""Read units of an item that is asked for, there or not: eventually consistent."""

_FIGURES = ROOT / "bench" / "results.json"
_LEDGER_UNITS = {"sms": 3.0, "push": 2.0, "webhook": 2.0}
"""Write units of the ledger a message: claim and completion, and of text messages the index by number. Those
of mail and fax are measured."""


@dataclass(frozen=True)
class Use:
    """What one message takes. `seconds` are its sender's, `reads` the items that it is looked up in."""

    channel: str
    seconds: float
    memory_mb: int
    batch: int
    reads: int
    fifo: bool = False


def dollars(use: Use, messages: int) -> dict[str, float]:
    """What so many messages cost, by the part; who sends them is the last where its price is known.

    Left out: what providers tell afterwards, logs, alarms, payloads, and items over 1 KB.
    """
    request = SQS_FIFO_REQUEST if use.fifo else SQS_REQUEST
    parts = {
        "mailbox and ledger writes": (1 + ledger_units(use.channel)) * WRITE_UNIT,
        "reads of who may get nothing": use.reads * UNREAD * READ_UNIT,
        "queue requests": (1 / QUEUED + 2 / use.batch) * request,
        "invocations": (1 / DISPATCHED + 1 / use.batch) * LAMBDA_REQUEST,
        "sender's time": lambda_time(use.seconds, use.memory_mb),
    }
    provider = PROVIDERS.get(use.channel)
    if provider:
        parts[provider[0]] = provider[1]
    return {name: price * messages for name, price in parts.items() if price}


def lambda_time(seconds: float, memory_mb: float) -> float:
    """What a function's time costs."""
    return seconds * memory_mb / 1024 * LAMBDA_GB_SECOND


def ledger_units(channel: str) -> float:
    """Write units of the ledger a message, as they were measured where they were."""
    if channel not in {"mail", "fax"}:
        return _LEDGER_UNITS.get(channel, 2.0)
    figures = measured()
    return float(
        figures["write_units_per_mail"] if channel == "mail" else figures["fax_ledger_units"]["short"]
    )


@cache
def measured() -> dict[str, Any]:
    """What the bench counted and measured."""
    figures: dict[str, Any] = json.loads(_FIGURES.read_text())
    return figures
