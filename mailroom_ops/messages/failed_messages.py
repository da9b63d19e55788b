"""Reads the messages that failed, bounced, were not delivered, or caused a complaint. The ledger's index of
failures has a partition for each day and channel."""

import heapq
import itertools
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import Struct

from mailroom.aws.dynamo_batches import MAX_KEYS, batch_get
from mailroom.channels.contracts import CONTRACTS
from mailroom.clock import epoch, iso
from mailroom.ledger.items import run_of, where
from mailroom.message.message import Key
from mailroom.message.outcome import CODES, FAILED
from mailroom.search.finder import Filter
from mailroom.telemetry import impersonal
from mailroom_ops.messages.status import first_recipient
from mailroom_ops.shared.deployed_stage import name
from mailroom_ops.shared.screen import Refused
from mailroom_ops.shared.times import span_of

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

INDEX = "failures"
AHEAD = 900
"""Seconds by which the clock of a function may be ahead of this machine's clock."""
MAX_DAYS = 400
"""Maximum number of days that are searched: each day costs a query for each channel. The ledger keeps items
for 90 days by default."""

# Unlike the logger's pattern, this one also matches an address without a domain. A match starts at the
# beginning of a word and never backtracks: otherwise the time for a long word without an @ would grow with
# the square of its length.
_WORD = r"[^\s@'\"<>,;()]"
_ADDRESS = re.compile(rf"(?<!{_WORD})({_WORD}){_WORD}*+@")
_TOKEN = re.compile(r"[A-Za-z0-9_:/.+=-]{25,}")
_QUOTED = re.compile(r"'[^']*'")
_KEPT = 4
"""Number of last characters of a token that remain readable when it is masked."""


class Failure(Struct, frozen=True):
    """Message that failed, bounced, was not delivered or caused a complaint. A missing text is empty."""

    at: str
    """Time of the outcome (ISO 8601)."""
    id: str
    event_type: str
    status: str
    to: str
    reason: str
    message: str
    attempts: int
    field: str = ""
    """Name of the invalid attribute, or `variable` for a variable of the template."""
    template: str = ""
    campaign: str = ""

    @property
    def day(self) -> str:
        """Day of the outcome (UTC)."""
        return self.at[:10]

    @property
    def why(self) -> str:
        """Reason, followed by the invalid attribute in brackets."""
        return f"{self.reason} ({self.field})" if self.field else self.reason


class FailureFilter(Filter, frozen=True):
    """Filter of failures by attributes of `Failure`. An empty field matches every failure."""

    reason: str = ""
    field: str = ""
    day: str = ""
    compared: ClassVar[tuple[str, ...]] = (*Filter.compared, "reason", "field", "day")


def choose(
    client: "DynamoDBClient", stage: str, start: float, end: float, criteria: FailureFilter, *, full: bool
) -> Iterator[Failure]:
    """Yield the failures between two times (epoch seconds) that a filter matches, the newest first. Addresses
    and numbers are masked unless `full` is true."""
    channels = [criteria.event_type] if criteria.event_type else list(CONTRACTS)
    listed = (failure_of(item, full=full) for item in failed(client, stage, start, end, channels))
    return (failure for failure in listed if criteria.takes(failure))


def moment(typed: str, now_s: float) -> float:
    """Convert the value of --since, such as `24h`, `2d`, a date or an ISO 8601 time, to epoch seconds. Raises
    Refused for another text, for a future time, and for a time more than MAX_DAYS ago."""
    ago = span_of(typed)
    if ago is not None:
        start = now_s - ago
    else:
        try:
            start = epoch(typed.strip())
        except ValueError:
            raise Refused(f"--since {typed!r:.60} is not a time; use 24h, 2d, 90m or 2026-11-20.") from None
    if start > now_s:
        raise Refused(f"--since {typed} is in the future; use a past time.")
    if now_s - start > MAX_DAYS * 86_400:
        raise Refused(f"--since {typed} is over {MAX_DAYS} days ago; use a later time.")
    return start


def days(start: float, end: float) -> Iterator[str]:
    """Yield the days (UTC) between two times in epoch seconds, as ISO 8601 dates, the last day first."""
    day, first = (datetime.fromtimestamp(seconds, UTC).date() for seconds in (end, start))
    while day >= first:
        yield day.isoformat()
        day -= timedelta(days=1)


def recipient(to: str | list[str] | None) -> str:
    """Return the first of the recipients, masked, and the number of further ones."""
    return _masked(first_recipient(to))


def failed(
    client: "DynamoDBClient", stage: str, start: float, end: float, channels: list[str]
) -> Iterator[dict[str, Any]]:
    """Yield the ledger's items of messages of these channels that ended between two times (epoch seconds)
    with a status in FAILED, the newest first. Items are read as the caller takes them, so the first items
    cost few reads."""
    ledger = name(stage, "ledger")
    first, last = {"N": str(int(start * 1000))}, {"N": str(round(end * 1000))}

    def of_day(failed_on: str) -> Iterator[dict[str, Any]]:
        pages = client.get_paginator("query").paginate(
            TableName=ledger,
            IndexName=INDEX,
            KeyConditionExpression="failed_on = :day AND completedAt BETWEEN :start AND :end",
            ExpressionAttributeValues={":start": first, ":end": last, ":day": {"S": failed_on}},
            ScanIndexForward=False,
            PaginationConfig={"PageSize": MAX_KEYS},
        )
        return (image for page in pages for image in page["Items"])

    def of_days() -> Iterator[dict[str, Any]]:
        for day in days(start, end):
            runs = [of_day(f"{day}#{channel[:40]}") for channel in channels]
            yield from heapq.merge(*runs, key=lambda item: int(item["completedAt"]["N"]), reverse=True)

    keys = (where(Key(image["id"]["S"], image["event_type"]["S"])) for image in of_days())
    # The index does not contain all attributes of a failure, so the items are read from the ledger.
    while run := list(itertools.islice(keys, MAX_KEYS)):
        items = {(row["id"], row["event_type"]): row for row in batch_get(client, {ledger: run})[ledger]}
        for key in run:
            item = items.get((key["id"]["S"], key["event_type"]["S"]), {})
            if item.get("status") in FAILED:  # the index may lag behind the table
                yield item


def failure_of(item: dict[str, Any], *, full: bool) -> Failure:
    """Convert an item of the ledger to a Failure. Addresses and numbers are masked unless `full` is true."""
    ended_at = iso((int(item["completedAt"]) + 0.5) / 1000)
    to, (reason, message, field) = item.get("to"), _error(item)
    if full:
        recipients = ", ".join(to) if isinstance(to, list) else to or ""
    else:
        recipients, message = recipient(to), masked_error(reason, message)
    return Failure(
        ended_at,
        item["id"],
        item["event_type"],
        item["status"],
        recipients,
        reason,
        message,
        int(item.get("attempts", 0)),
        field,
        item.get("template", ""),
        run_of(item)[0],
    )


def _error(item: dict[str, Any]) -> tuple[str, str, str]:
    error = item.get("error") or {}
    codes = (item.get(name) for name in CODES.get(item["status"], ()))
    reason = next(filter(None, codes), error.get("code", "unknown"))
    return str(reason), str(error.get("message", "")), str(error.get("field", ""))


def masked_error(reason: str, message: str) -> str:
    """Return an error message with recipients masked. Mailroom's own messages, whose reason is `invalid`,
    quote values of the item: these are masked, because other numbers in the message are times, files or
    examples. In a provider's message only addresses are masked here: numbers were masked before it was
    stored."""
    if reason != "invalid":
        return _ADDRESS.sub(r"\1***@", message)
    return _QUOTED.sub(lambda quoted: _masked(quoted[0]), message)


def _masked(text: str) -> str:
    """Mask every address, number and token in a text."""
    # Tokens are masked before numbers: the number in an ARN would be masked first, and hide that it is an
    # ARN.
    return impersonal(_TOKEN.sub(_masked_token, _ADDRESS.sub(r"\1***@", text)))


def _masked_token(match: re.Match[str]) -> str:
    """Mask a device token, or the ARN of a device. Host names are not masked, as they identify no person."""
    token = match[0]
    is_name = "://" in token or (token.islower() and "." in token and ":" not in token)
    return token if is_name else f"***{token[-_KEPT:]}"
