"""Pages of messages, newest first: all messages, or the messages to a recipient."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, ClassVar, get_args

from msgspec import Struct

from mailroom.aws.dynamo_batches import MAX_KEYS
from mailroom.aws.dynamo_values import plain, string
from mailroom.clock import iso
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
BATCHES = 2
"""Maximum number of calls that read the ledger for a page of up to 200 messages. If few messages match the
filter, the page ends after them."""
Place = tuple[str, dict[str, Any]]
"""Sort key of a message in a list, and its ledger item, or {} if the message is left out."""
KEYS = ("found_by", "put")
"""Keys of the table `search`."""


class Filter(Struct, frozen=True):
    """Filter of messages; an empty field matches any value."""

    event_type: str = ""
    status: str = ""
    template: str = ""
    campaign: str = ""
    """Name of a campaign, or of a campaign and its run: `spring#2026`."""
    twice: str = ""
    """Not empty if only messages that may have arrived twice match."""
    since: str = ""
    """Time in epoch milliseconds, with 13 digits, from which on messages match by the time of their put."""
    until: str = ""
    """Time in the same form, before which messages match."""
    compared: ClassVar[tuple[str, ...]] = ("event_type", "template")
    """Fields that are compared with the attributes of a message."""
    statuses: ClassVar[tuple[str, ...]] = get_args(Status)
    """Valid values of `status`."""

    def check(self, cursor: str) -> None:
        """Raise Invalid for an invalid cursor, and for an unknown status, which would only return empty
        pages."""
        if self.status and self.status not in self.statuses:
            raise Invalid("status", f"{self.status!r:.40} is not a status; use {', '.join(self.statuses)}")
        if cursor and not PUT.fullmatch(cursor):
            raise Invalid("cursor", "is not a valid cursor; use the cursor of the previous page")

    def span(self, cursor: str) -> tuple[str, str]:
        """Return the first and the last sort key of the messages before a cursor that may match. The last one
        is the cursor itself, because a key condition with two bounds includes both."""
        return self.since or "0", min(cursor or "9", self.until or "9")

    def stands(self, message: Any) -> bool:
        """Return whether a message has the filter's status."""
        return self.status in ("", message.status)

    def takes(self, message: Any) -> bool:
        """Return whether a message matches the filter, except for the time of its put."""
        values = ((getattr(self, name), getattr(message, name)) for name in self.compared)
        of_campaign = not self.campaign or (message.campaign and message.id.startswith(f"{self.campaign}#"))
        of_sends = not self.twice or TWICE in message.details
        return (
            of_campaign
            and of_sends
            and self.stands(message)
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

    def newest(self, filter_: Filter = ANY, cursor: str = "", size: int = PAGE) -> FoundPage:
        """Return a page of up to `size` messages. Raises Invalid, and botocore's errors."""
        return self._page(self.partitions(filter_), filter_, cursor, size)

    def partitions(self, filter_: Filter) -> Sequence[str]:
        """Return the partitions with the fewest messages that have all messages of the filter."""
        if "#" in filter_.campaign:  # the filter contains a run
            return partitions_of("run", filter_.campaign)
        return partitions_of("template", filter_.template) if filter_.template else NEWEST

    def to(self, recipient: str, filter_: Filter = ANY, cursor: str = "", size: int = PAGE) -> FoundPage:
        """Return a page of the messages to a recipient, who may be stored in any form of `forms_of`. Raises
        the same errors as `newest`, and InvalidSecret."""
        partitions = [self.rows.partition(form) for form in forms_of(recipient, self.default_region)]
        return self._page(partitions, filter_, cursor, size)

    def naming(self, key: Key) -> list[MessageStatus]:
        """Return the newest messages that refer to a message in their `unless`. Raises the same errors as
        `to`."""
        return self._page([partition_naming(key.event_type, key.id)], ANY, "", PAGE).messages

    def _page(self, partitions: Sequence[str], filter_: Filter, cursor: str, size: int) -> FoundPage:
        filter_.check(cursor)
        # One message more than the page holds is read, which shows whether there is another page.
        at_once = min(MAX_KEYS, size + 1) if filter_ == type(filter_)() else MAX_KEYS
        maximum = max(BATCHES * at_once, size)
        # If there are several partitions, each is read for twice its share of the messages.
        limit = 1 + min(maximum, 2 * maximum // len(partitions))
        request = {"TableName": self.search, "Limit": limit}
        rows, end = newest_of(self.client, request, KEYS, partitions, filter_.span(cursor))
        if len(rows) > maximum:
            end = rows[maximum - 1]["put"]
        return page_of(self._with_items(rows[:maximum], at_once), end, filter_, cursor, size)

    def _partitions_of(self, item: Mapping[str, Any]) -> set[str]:
        of_run = run_row(item)
        return {row.found_by for row in (*self.rows.of(item), *([of_run] if of_run else []))}

    def _with_items(self, rows: Sequence[dict[str, Any]], at_once: int) -> Iterator[Place]:
        """Yield the sort key of each row with its ledger item, or with {} if the item has expired, or belongs
        to the row no more: its message was erased or redirected meanwhile. Each call reads `at_once`
        items."""
        for first in range(0, len(rows), at_once):
            run = rows[first : first + at_once]
            keys = [Key(row["id"], row["event_type"]) for row in run]
            items = items_of(self.client, self.ledger, set(keys), consistent=False)
            for key, row in zip(keys, run, strict=True):
                item = items.get(key, {})
                yield row["put"], item if row["found_by"] in self._partitions_of(item) else {}


def newest_of(
    client: "DynamoDBClient",
    request: Mapping[str, Any],
    names: tuple[str, str],
    partitions: Sequence[str],
    span: tuple[str, str],
) -> tuple[list[dict[str, Any]], str | None]:
    """Read the newest rows of partitions whose sort keys are in a span, with one call for each partition.

    `request` has the table, the index, and the limit of rows of a call. `names` are the names of the
    partition key and of the sort key. Returns all rows from some sort key on, the newest first, and this sort
    key, or None if it returns all rows.
    """
    (first, last), sort = map(string, span), names[1]

    def read(partition: str) -> Any:
        values = {":partition": string(partition), ":first": first, ":last": last}
        return client.query(
            KeyConditionExpression="#partition = :partition AND #sort BETWEEN :first AND :last",
            ExpressionAttributeNames={"#partition": names[0], "#sort": sort},
            ExpressionAttributeValues=values,
            ScanIndexForward=False,
            **request,
        )

    # The partitions are read in parallel, because the console may be far away from the stage's region.
    with ThreadPoolExecutor(len(partitions)) as pool:
        answers = [*pool.map(read, partitions)]
    # Behind the last row of a partition that has more, rows of other partitions are not the next ones.
    ends = (answer["LastEvaluatedKey"][sort]["S"] for answer in answers if "LastEvaluatedKey" in answer)
    end = max(ends, default=None)
    rows = (plain(row) for answer in answers for row in answer["Items"])
    complete = (row for row in rows if end is None or row[sort] >= end)
    return sorted(complete, key=lambda row: str(row[sort]), reverse=True), end


def page_of(places: Iterable[Place], end: str | None, filter_: Filter, cursor: str, size: int) -> FoundPage:
    """Return the page with the first `size` messages that match a filter. `end` is the sort key at which
    messages follow that are not in `places`."""
    messages: list[MessageStatus] = []
    last = cursor
    for place, item in places:
        if len(messages) == size:
            return FoundPage(messages, last)
        # The message may be in two partitions, or the last one of the page before.
        message = of_ledger(item) if item and place != last else None
        messages += [message] if message and filter_.takes(message) else []
        last = place
    return FoundPage(messages, end)
