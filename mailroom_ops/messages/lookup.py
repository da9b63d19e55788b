"""Search of a deployed stage for messages, by a filter, a recipient or an id."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct, structs

from mailroom.errors import Invalid
from mailroom.ledger.items import FAILURE_SHARDS
from mailroom.ledger.status_reader import MessageStatus
from mailroom.message.address import bare, forms_of
from mailroom.message.message import Key, Reference
from mailroom.message.outcome import FAILED
from mailroom.search.finder import PAGE, Filter, Finder, FoundPage, page_of
from mailroom.search.rows import partitions_of
from mailroom_ops.messages import filters
from mailroom_ops.messages.failed_messages import ROUND, Failure, failed_round, failure_of
from mailroom_ops.messages.filters import MessageFilter
from mailroom_ops.messages.views import first_recipient, reader_of
from mailroom_ops.messages.waiting import WAITS_FOR, queued
from mailroom_ops.shared.deployed_stage import search_of
from mailroom_ops.shared.refusals import Refused

if TYPE_CHECKING:
    import boto3
    from types_boto3_dynamodb import DynamoDBClient

PARTS = (
    "The search stores only hashes of addresses and numbers: type the whole address or number, not a part."
)
RUNS = 3
"""Number of a campaign's latest runs whose messages are listed if the filter does not name a run."""
By = Literal["newest", "id", "recipient", "part", "list"]
"""Way in which messages were found. `part`: the newest messages were searched for the text in their ids, or
as the provider's id."""
_HEADER = re.compile(r"^(?:X-Correlation-ID|Message-ID):\s*", re.IGNORECASE)
_MESSAGE_ID_OF_SES = re.compile(r"^<?([0-9a-f]{16}(?:-[0-9a-f]+)+)@(?:[\w-]+\.)?amazonses\.com>?$")


class MessageRow(Struct, frozen=True):
    """Row of a message in a list. Times are ISO 8601 in UTC, or None if the ledger does not have them."""

    id: str
    event_type: str
    status: str
    waits_for: str
    """Reason of the wait; empty if the message does not wait."""
    template: str | None
    subject: str | None
    to: str | list[str] | None
    updated_at: str | None
    reason: str = ""
    """Code of the reason why the message failed, or why its latest try did not send it."""
    field: str = ""
    """Name of the invalid attribute, or `variable` for a variable of the template."""
    message: str = ""
    """Sentence about this reason."""
    put_at: str | None = None
    dead_lettered_at: str | None = None
    """Time when the message became a dead letter; None if the message is not a dead letter."""

    @property
    def recipient(self) -> str:
        """First recipient, and the number of further ones."""
        return first_recipient(self.to)

    @property
    def standing(self) -> str:
        """Status for people: that it is a dead letter, the reason of its wait, or its status."""
        if self.dead_lettered_at:
            return "dead letter"
        return f"waits for {WAITS_FOR[self.waits_for]}" if self.waits_for else self.status

    @property
    def headline(self) -> str:
        """Title of the message for people."""
        return self.subject or self.template or self.id


class FoundAnswer(Struct, frozen=True):
    """Output of the command `messages list`, the newest messages first."""

    stage: str
    by: By
    messages: list[MessageRow]
    more: bool
    cursor: str | None
    """Cursor of the next page."""
    looked_back_to: str | None
    """Time of the oldest message that was examined; None if all messages were."""
    queued: int | None
    """Approximate number of messages in queues, which are not listed yet; None if messages were found."""


class Containing(MessageFilter, frozen=True):
    """Filter of messages whose id contains a text, or whose provider's id is the text."""

    text: str = ""

    def takes(self, message: MessageStatus) -> bool:
        return super().takes(message) and (self.text in message.id or self.text == message.provider_id)


class StageFinder(Finder, frozen=True):
    """Search for messages of a deployed stage. It also knows the ledger's index of failures and dead letters,
    which contains only such messages, and the runs of campaigns."""

    stage: str = ""

    def partitions(self, filter_: Filter) -> Sequence[str]:
        campaign = filter_.campaign
        needs_runs = campaign and not ("#" in campaign or filter_.template)
        runs = filters.latest_runs(self.client, self.stage, campaign, RUNS) if needs_runs else []
        of_runs = [partition for run in runs for partition in partitions_of("run", f"{campaign}#{run.run}")]
        return of_runs or super().partitions(filter_)


def newest_failures(
    client: "DynamoDBClient", stage: str, filter_: MessageFilter, cursor: str, size: int
) -> FoundPage:
    """Return a page of the ledger's index of failures and dead letters, by the time of the failure. Raises
    Invalid, and botocore's errors."""
    filter_.check(cursor)
    items, end = failed_round(client, stage, filter_.failing, filter_.span(cursor))
    return page_of(((item["failed_at"], item) for item in items), end, filter_, cursor, size)


def finder_of(session: "boto3.Session", stage: str) -> Finder | None:
    """Return the finder of a stage, or None for a stage without search. Raises NotDeployed."""
    facts, rows = search_of(session, stage)
    if rows is None:
        return None
    dynamodb = session.client("dynamodb")
    return StageFinder(dynamodb, facts.search_table, facts.ledger_table, rows, facts.default_region, stage)


class Lookup(Struct, frozen=True):
    """Search of a stage for the messages that match a filter and a text, or the filter alone if the text is
    empty. `finder` is None for a stage without search."""

    session: "boto3.Session"
    stage: str
    finder: Finder | None
    text: str
    criteria: MessageFilter
    parts: bool = True
    """Whether a text that is not a recipient is also looked for in the ids."""

    def answer(self, cursor: str, limit: int | None = None) -> FoundAnswer:
        """Return a page of the messages, or the messages of as many pages as reach a `limit`. Raises Refused
        for an invalid cursor, and if the result is empty because the filter has a name that does not
        exist."""
        page, by = self._page(cursor, limit or PAGE)
        rows = [row_of(message) for message in page.messages]
        while limit and page.cursor and len(rows) < limit:
            page, _ = self._page(page.cursor, limit - len(rows))
            rows += [row_of(message) for message in page.messages]
        queued_count = None
        if not (rows or page.cursor):
            filters.check_names(self.session, self.stage, self.criteria, self.criteria.statuses)
            queued_count = queued(self.session, self.stage)
        after = page.cursor
        return FoundAnswer(self.stage, by, rows, after is not None, after, page.looked_back_to, queued_count)

    def every(self, *, full: bool = True) -> Iterator[Failure]:
        """Yield all messages, with the reasons why they were not sent, masked unless `full` is true. A page
        is read when its messages are taken."""
        cursor: str | None = ""
        # A round of the index of failures has many more messages than a page.
        size = ROUND * FAILURE_SHARDS * len(self.criteria.failing) or PAGE
        while cursor is not None:
            page, _ = self._page(cursor, PAGE if self.text else size)
            yield from (failure_of(message, full=full) for message in page.messages)
            cursor = page.cursor

    def _page(self, cursor: str, size: int) -> tuple[FoundPage, By]:
        finder, criteria = self.finder, self.criteria
        try:
            if not self.text and criteria.failing:
                client = self.session.client("dynamodb")
                return newest_failures(client, self.stage, criteria, cursor, size), "newest"
        except Invalid as fault:
            raise Refused(f"{fault}.") from None
        text = _MESSAGE_ID_OF_SES.sub(r"\1", _HEADER.sub("", self.text))
        reference = Reference.found_in(text)
        ids = [text] if reference is None else [text, reference.id]
        find = reader_of(self.session, self.stage).find
        messages_by_id = (message for id_ in ids for message in find(id_))
        by_id = [] if cursor else [*filter(criteria.takes_named, messages_by_id)]
        if finder is None:
            return FoundPage(by_id, None), "id"
        try:
            if not text:
                return finder.newest(criteria, cursor, size), "newest"
            page = finder.to(text, criteria, cursor, max(1, size - len(by_id)))
            if self.parts and not (
                by_id or page.messages or page.cursor or _is_whole(text, finder.default_region)
            ):
                return finder.newest(Containing(**structs.asdict(criteria), text=text), cursor, size), "part"
        except Invalid as fault:
            raise Refused(f"{fault}.") from None
        messages = {Key(message.id, message.event_type): message for message in (*by_id, *page.messages)}
        return FoundPage([*messages.values()], page.cursor), "id" if by_id else "recipient"


def _is_whole(text: str, region: str) -> bool:
    """Return whether a text is a complete address or number, and so cannot be a part of an id."""
    form = forms_of(text, region)[0]
    with suppress(ValueError):
        return form.startswith("+") or bool(bare(form))
    return False


def row_of(message: MessageStatus) -> MessageRow:
    """Return the row of a message in a list."""
    row = msgspec.convert(message, MessageRow, from_attributes=True)
    times = message.times
    row = structs.replace(row, put_at=times.get("putAt"), dead_lettered_at=times.get("dead_lettered_at"))
    if not (message.trouble or message.status in FAILED):
        return row
    failure = failure_of(message, full=True)
    return structs.replace(row, reason=failure.reason, message=failure.message, field=failure.field)
