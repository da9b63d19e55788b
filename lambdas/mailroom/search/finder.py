"""Pages of messages, newest first: all messages, or the messages to a recipient."""

import heapq
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, islice, repeat
from typing import TYPE_CHECKING, Any, ClassVar, get_args

from msgspec import Struct

from mailroom.aws.dynamo_batches import MAX_KEYS
from mailroom.aws.dynamo_values import plain, string
from mailroom.clock import Clock, iso
from mailroom.errors import Invalid
from mailroom.ledger.batch import items_of
from mailroom.ledger.status_reader import TWICE, MessageStatus, of_ledger
from mailroom.message.address import forms_of
from mailroom.message.message import Key
from mailroom.message.outcome import Status
from mailroom.search.rows import NEWEST, PUT, Rows, partition_naming, partitions_of, run_row

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

PAGE = 50
"""Maximum number of messages in a page."""
SECONDS = 2.0
"""Seconds after which a page ends even if it is not full, because the search takes long if few messages match
the filter."""


class Filter(Struct, frozen=True):
    """Filter of messages; an empty field matches any value."""

    event_type: str = ""
    status: str = ""
    template: str = ""
    campaign: str = ""
    """Name of a campaign, or of a campaign and its run: `spring#2026`."""
    twice: str = ""
    """Not empty if only messages that may have arrived twice match."""
    compared: ClassVar[tuple[str, ...]] = ("event_type", "status", "template")
    """Fields that are compared with the attributes of a message."""

    def check(self, cursor: str) -> None:
        """Raise Invalid for an invalid cursor, and for an unknown status, which would only return empty
        pages."""
        if self.status and self.status not in (statuses := get_args(Status)):
            raise Invalid("status", f"{self.status!r:.40} is not a status; use {', '.join(statuses)}")
        if cursor and not PUT.fullmatch(cursor):
            raise Invalid("cursor", "is not a valid cursor; use the cursor of the previous page")

    def takes(self, message: Any) -> bool:
        """Return whether a message matches the filter."""
        values = ((getattr(self, name), getattr(message, name)) for name in self.compared)
        of_campaign = not self.campaign or (message.campaign and message.id.startswith(f"{self.campaign}#"))
        of_sends = not self.twice or TWICE in message.details
        return (
            of_campaign
            and of_sends
            and all(not criterion or criterion == value for criterion, value in values)
        )


ANY = Filter()


class FoundPage(Struct, frozen=True):
    """Page of messages, newest first."""

    messages: list[MessageStatus]
    cursor: str | None
    """Cursor of the next page; None if this page is the last."""

    @property
    def looked_back_to(self) -> str | None:
        """Time of the oldest message that was examined for the page; None for the last page."""
        return self.cursor and iso(int(self.cursor[:13]) / 1000)


class Finder(Struct, frozen=True):
    """Finds messages of one stage."""

    client: "DynamoDBClient"
    search: str
    """Name of the table of rows."""
    ledger: str
    """Name of the ledger's table."""
    rows: Rows
    default_region: str = ""
    clock: Clock = time.monotonic

    def newest(self, filter_: Filter = ANY, cursor: str = "", size: int = PAGE) -> FoundPage:
        """Return a page of up to `size` messages. Raises Invalid, and botocore's errors."""
        if "#" in filter_.campaign:  # the filter contains a run, which has its own partitions
            return self._page(partitions_of(filter_.campaign), filter_, cursor, size)
        return self._page(NEWEST, filter_, cursor, size)

    def to(self, recipient: str, filter_: Filter = ANY, cursor: str = "") -> FoundPage:
        """Return a page of the messages to a recipient, who may be stored in any form of `forms_of`. Raises
        the same errors as `newest`, and InvalidSecret."""
        partitions = [self.rows.partition(form) for form in forms_of(recipient, self.default_region)]
        return self._page(partitions, filter_, cursor, PAGE)

    def naming(self, key: Key) -> list[MessageStatus]:
        """Return the newest messages that refer to a message in their `unless`. Raises the same errors as
        `to`."""
        return self._page([partition_naming(key.event_type, key.id)], ANY, "", PAGE).messages

    def _page(self, partitions: Sequence[str], filter_: Filter, cursor: str, size: int) -> FoundPage:
        filter_.check(cursor)
        # One message more than the page holds is read, which shows whether there is another page.
        at_once = PAGE + 1 if filter_ == ANY else MAX_KEYS
        # If there are several partitions, each is read for twice its share of the page.
        limit = at_once if len(partitions) == 1 else 2 * at_once // len(partitions)
        # The partitions are read in parallel, because the console may be far away from the stage's region.
        with ThreadPoolExecutor(len(partitions)) as pool:
            by_place = list(pool.map(self._rows_of, partitions, repeat(cursor), repeat(limit)))
        rows = heapq.merge(*by_place, key=lambda row: str(row["put"]), reverse=True)
        messages: list[MessageStatus] = []
        last, end = cursor, self.clock() + SECONDS
        for row, item in self._with_items(rows, at_once):
            # Each page examines at least one message, so that the next page makes progress even if reads are
            # slow.
            if len(messages) == size or (last != cursor and self.clock() >= end):
                return FoundPage(messages, last)
            if row["put"] == last:
                continue  # the message is in two partitions
            last = str(row["put"])
            # A message that was erased or redirected meanwhile does not belong to this row any more.
            if row["found_by"] in self._partitions_of(item):
                message = of_ledger(item)
                messages += [message] if filter_.takes(message) else []
        return FoundPage(messages, None)

    def _partitions_of(self, item: Mapping[str, Any]) -> set[str]:
        of_run = run_row(item)
        return {row.found_by for row in (*self.rows.of(item), *([of_run] if of_run else []))}

    def _rows_of(self, partition: str, cursor: str, limit: int) -> Iterator[dict[str, Any]]:
        """Return the rows of a partition before the cursor, newest first. Each call to DynamoDB reads up to
        `limit` rows. The first call is made at once, and further calls when their rows are needed."""
        request: dict[str, Any] = {
            "Limit": limit,
            "KeyConditionExpression": "found_by = :found_by",
            "ExpressionAttributeValues": {":found_by": string(partition)},
        }
        if cursor:
            request["KeyConditionExpression"] += " AND #put < :cursor"
            request["ExpressionAttributeNames"] = {"#put": "put"}
            request["ExpressionAttributeValues"][":cursor"] = string(cursor)
        paginator = self.client.get_paginator("query")
        pages = iter(paginator.paginate(TableName=self.search, ScanIndexForward=False, **request))
        first = next(pages)
        return (plain(row) for page in chain([first], pages) for row in page["Items"])

    def _with_items(
        self, rows: Iterator[dict[str, Any]], at_once: int
    ) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Yield each row with its ledger item, or with {} if the item has expired. Each call reads the items
        of `at_once` rows."""
        while run := list(islice(rows, at_once)):
            keys = {Key(row["id"], row["event_type"]) for row in run}
            items = items_of(self.client, self.ledger, keys, consistent=False)
            for row in run:
                yield row, items.get(Key(row["id"], row["event_type"]), {})
