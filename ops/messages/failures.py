"""What failed, out of the ledger's index of failures: one entry a day and channel."""

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mailroom.aws.dynamo import plain
from mailroom.channels.contracts import CONTRACTS
from mailroom.clock import iso
from ops.screen import Refused
from ops.stage import name
from ops.times import span_of

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

INDEX = "failures"
MAX_DAYS = 400
"""A day is a query of each channel; the ledger keeps nothing for longer by default than 90 days."""


class Failure(Struct, frozen=True):
    """One message that failed: when (ISO 8601), which, whom it was for, and why."""

    at: str
    id: str
    event_type: str
    to: str
    reason: str
    message: str
    attempts: int


class Count(Struct, frozen=True):
    """How many of a channel failed for one reason."""

    event_type: str
    reason: str
    count: int


class Failures:
    """Reads one stage's."""

    def __init__(self, client: "DynamoDBClient", stage: str) -> None:
        self._client = client
        self._table = name(stage, "ledger")

    def since(
        self, start: float, end: float, channels: Iterable[str], reason: str | None = None
    ) -> Iterator[dict[str, Any]]:
        """The index's items between two times (epoch seconds), the newest first, over all these channels."""
        wanted = list(channels)
        for day in days(start, end):
            runs = [self._of_day(f"{day}#{channel[:40]}", start, reason) for channel in wanted]
            yield from heapq.merge(*runs, key=lambda item: int(item["completedAt"]), reverse=True)

    def _of_day(self, failed_on: str, start: float, reason: str | None) -> Iterator[dict[str, Any]]:
        values: dict[str, Any] = {":day": {"S": failed_on}, ":start": {"N": str(int(start * 1000))}}
        asked: dict[str, Any] = {}
        if reason is not None:
            values[":reason"] = {"S": reason}
            asked = {
                "FilterExpression": "#error.#code = :reason",
                "ExpressionAttributeNames": {"#error": "error", "#code": "code"},
            }
        pages = self._client.get_paginator("query").paginate(
            TableName=self._table,
            IndexName=INDEX,
            KeyConditionExpression="failed_on = :day AND completedAt >= :start",
            ExpressionAttributeValues=values,
            ScanIndexForward=False,
            **asked,
        )
        return (plain(image) for page in pages for image in page["Items"])


def counted(items: Iterable[dict[str, Any]]) -> list[Count]:
    """How many there are by channel and reason, the most first."""
    counts = Counter((item["event_type"], _error(item)[0]) for item in items)
    order = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    return [Count(event_type, reason, count) for (event_type, reason), count in order]


def failure(item: dict[str, Any], to: str, message: str) -> Failure:
    """One item as an answer has it; `to` and `message` as they may be shown."""
    at = iso((int(item["completedAt"]) + 0.5) / 1000)
    reason = _error(item)[0]
    return Failure(at, item["id"], item["event_type"], to, reason, message, int(item.get("attempts", 0)))


def sentence(item: dict[str, Any]) -> str:
    """Why it failed."""
    return _error(item)[1]


def moment(typed: str, now: float) -> float:
    """`24h`, `2d`, `90m`, a date or an ISO 8601 time, as epoch seconds. Raises Refused."""
    ago = span_of(typed)
    if ago is not None:
        start = now - ago
    else:
        try:
            found = datetime.fromisoformat(typed.strip())
        except ValueError:
            raise Refused(f"--since {typed!r:.60} is no time; use 24h, 2d, 90m or 2026-11-20.") from None
        start = (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    if start > now:
        raise Refused(f"--since {typed} lies ahead; use a time that is past.")
    if now - start > MAX_DAYS * 86_400:
        raise Refused(f"--since {typed} is over {MAX_DAYS} days ago; the ledger keeps nothing so long.")
    return start


def days(start: float, end: float) -> Iterator[str]:
    """The days (UTC) between two times, the last one first."""
    day, first = (datetime.fromtimestamp(each, UTC).date() for each in (end, start))
    while day >= first:
        yield day.isoformat()
        day -= timedelta(days=1)


def channels_of(channel: str | None) -> list[str]:
    """That one; without it, all there are."""
    return [channel] if channel else list(CONTRACTS)


def _error(item: dict[str, Any]) -> tuple[str, str]:
    error = item.get("error") or {}
    return str(error.get("code", "unknown")), str(error.get("message", ""))
