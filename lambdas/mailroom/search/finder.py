"""Pages of messages: by whom they are for, or the newest first."""

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
from mailroom.ledger.reader import TWICE, MessageStatus, of_ledger
from mailroom.message.address import forms_of
from mailroom.message.message import Key
from mailroom.message.outcome import Status
from mailroom.search.rows import NEWEST, PUT, Rows, partition_naming, partitions_of, run_row

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

PAGE = 50
"""Messages of a page."""
SECONDS = 2.0
"""Seconds for which a page with a filter reads on."""


class Filter(Struct, frozen=True):
    """Which messages are wanted; "": any. `campaign` names one, or one and its run: `spring#2026`."""

    event_type: str = ""
    status: str = ""
    template: str = ""
    campaign: str = ""
    twice: str = ""
    """Any text if only messages that may have arrived twice are wanted."""
    compared: ClassVar[tuple[str, ...]] = ("event_type", "status", "template")
    """Fields that are compared with the attributes of a message."""

    def check(self, cursor: str) -> None:
        """Raise Invalid for a status that no message has, which would make an empty page without a reason,
        and for a cursor of no page."""
        if self.status and self.status not in (statuses := get_args(Status)):
            raise Invalid("status", f"{self.status!r:.40} is not a status; use {', '.join(statuses)}")
        if cursor and not PUT.fullmatch(cursor):
            raise Invalid("cursor", "is no page's cursor; use the one that came with the page before")

    def takes(self, message: Any) -> bool:
        """Return whether the filter takes a message."""
        values = ((getattr(self, name), getattr(message, name)) for name in self.compared)
        of_campaign = not self.campaign or message.id.startswith(f"{self.campaign}#")
        of_sends = not self.twice or TWICE in message.details
        return of_campaign and of_sends and all(not wanted or wanted == value for wanted, value in values)


ANY = Filter()


class FoundPage(Struct, frozen=True):
    """A page, the newest message first."""

    messages: list[MessageStatus]
    cursor: str | None
    """Cursor of the next page; None if this page is the last."""

    @property
    def looked_back_to(self) -> str | None:
        """Time to which the page has looked back; None if it is the last, and knows of all messages."""
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

    def newest(self, wanted: Filter = ANY, cursor: str = "", most: int = PAGE) -> FoundPage:
        """A page of all messages, of so many at `most`. Raises Invalid for a cursor that is none, and
        botocore's errors."""
        if "#" in wanted.campaign:  # a run has partitions of its own
            return self._page(partitions_of(wanted.campaign), wanted, cursor, most)
        return self._page(NEWEST, wanted, cursor, most)

    def to(self, recipient: str, wanted: Filter = ANY, cursor: str = "") -> FoundPage:
        """A page of the messages to one recipient: see `forms_of`. Raises as `newest`, and
        InvalidSecret."""
        partitions = [self.rows.partition(each) for each in forms_of(recipient, self.default_region)]
        return self._page(partitions, wanted, cursor, PAGE)

    def naming(self, key: Key) -> list[MessageStatus]:
        """Return the newest messages that name a message in their `unless`. Raises as `to`."""
        return self._page([partition_naming(key.event_type, key.id)], ANY, "", PAGE).messages

    def _page(self, partitions: Sequence[str], wanted: Filter, cursor: str, most: int) -> FoundPage:
        wanted.check(cursor)
        # One more than the page has says whether there is another page.
        at_once = PAGE + 1 if wanted == ANY else MAX_KEYS
        # Of several partitions each has its share, and some more.
        limit = at_once if len(partitions) == 1 else 2 * at_once // len(partitions)
        with ThreadPoolExecutor(len(partitions)) as pool:  # the console's AWS may be far away
            by_place = list(pool.map(self._rows_of, partitions, repeat(cursor), repeat(limit)))
        rows = heapq.merge(*by_place, key=lambda row: str(row["put"]), reverse=True)
        found: list[MessageStatus] = []
        last, end = cursor, self.clock() + SECONDS
        for row, item in self._with_items(rows, at_once):
            # A page that has looked at one message at least gets on, however slow the reads are.
            if len(found) == most or (last != cursor and self.clock() >= end):
                return FoundPage(found, last)
            if row["put"] == last:
                continue  # it stands in two partitions
            last = str(row["put"])
            # What was erased, or went to somebody else after all, has this row no more.
            if row["found_by"] in self._partitions_of(item):
                message = of_ledger(item)
                found += [message] if wanted.takes(message) else []
        return FoundPage(found, None)

    def _partitions_of(self, item: Mapping[str, Any]) -> set[str]:
        of_run = run_row(item)
        return {each.found_by for each in (*self.rows.of(item), *([of_run] if of_run else []))}

    def _rows_of(self, partition: str, cursor: str, limit: int) -> Iterator[dict[str, Any]]:
        """A partition's rows before the cursor, the newest first; so many a call. The first call is made."""
        asked: dict[str, Any] = {
            "Limit": limit,
            "KeyConditionExpression": "found_by = :found_by",
            "ExpressionAttributeValues": {":found_by": string(partition)},
        }
        if cursor:
            asked["KeyConditionExpression"] += " AND #put < :cursor"
            asked["ExpressionAttributeNames"] = {"#put": "put"}
            asked["ExpressionAttributeValues"][":cursor"] = string(cursor)
        paginator = self.client.get_paginator("query")
        pages = iter(paginator.paginate(TableName=self.search, ScanIndexForward=False, **asked))
        first = next(pages)
        return (plain(each) for page in chain([first], pages) for each in page["Items"])

    def _with_items(
        self, rows: Iterator[dict[str, Any]], at_once: int
    ) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        """Each row with its ledger's item; {}: that has gone before it. So many are read at once."""
        while run := list(islice(rows, at_once)):
            keys = {Key(row["id"], row["event_type"]) for row in run}
            items = items_of(self.client, self.ledger, keys, consistent=False)
            for row in run:
                yield row, items.get(Key(row["id"], row["event_type"]), {})
