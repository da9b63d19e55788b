"""The commands `find` and `list`: read the messages of a recipient, and the newest messages, from the table
`search`."""

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
import typer
from msgspec import Struct, structs
from rich.text import Text

from mailroom.errors import Invalid, quantity
from mailroom.ledger.items import DEAD_LETTER
from mailroom.ledger.status_reader import MessageStatus
from mailroom.message.address import bare, forms_of
from mailroom.message.message import Key, Reference
from mailroom.message.outcome import FAILED
from mailroom.search.finder import ANY, PAGE, Filter, Finder, FoundPage, page_of
from mailroom.search.rows import partitions_of
from mailroom_ops.messages import filters
from mailroom_ops.messages.failed_messages import Failure, failed_round, failure_of
from mailroom_ops.messages.failures_csv import print_csv
from mailroom_ops.messages.filters import MessageFilter
from mailroom_ops.messages.listed import listed, text_of
from mailroom_ops.messages.status import STYLES, first_recipient, reader_of
from mailroom_ops.messages.waiting import WAITS_FOR, queued, unlisted
from mailroom_ops.shared.deployed_stage import aws_session, search_of
from mailroom_ops.shared.options import AsJson, Stage
from mailroom_ops.shared.screen import (
    Refused,
    aws_faults,
    errors,
    fold,
    narrow,
    plain,
    print_answer,
    print_line,
    screen,
    stacked,
    table_of,
    whole,
)
from mailroom_ops.shared.times import short

if TYPE_CHECKING:
    import boto3

NO_SEARCH = (
    "{stage} has no search, so its messages can only be found by their ids. Deploy it with this version, and "
    "with mailroom.{stage}.search true in cdk.json."
)

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

ArrivedTwice = Annotated[bool, typer.Option("--twice", help="Only messages that may have arrived twice.")]
Cursor = Annotated[str, typer.Option(help="Print the page at this cursor, which the previous page printed.")]


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
    trouble: dict[str, str] | None = None
    """Reason why the latest try did not send the message: {code, message}."""
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
    """Output of the commands `find` and `list`, the newest messages first."""

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


def list_(
    stage: Stage = "dev",
    *,
    channel: filters.Channel = "",
    status: filters.Status = "",
    template: filters.Template = "",
    campaign: filters.Campaign = "",
    arrived_twice: ArrivedTwice = False,
    ids_file: Annotated[
        Path | None, typer.Option("--ids", help="A file with ids, addresses or numbers, one per line.")
    ] = None,
    since: filters.Since = "",
    until: filters.Until = "",
    cursor: Cursor = "",
    as_csv: filters.AsCsv = False,
    as_json: AsJson = False,
) -> None:
    """Print the newest messages, 50 per page.

    --since and --until are compared with the time at which a message was put. --status may also be
    dead-letter, or not-sent: everything but sent, delivered and complained, so also what waits or was
    cancelled. Without a run, --campaign lists its latest 3 runs.

    Messages of a run, of a template, and with a status of failure are indexed. With another filter, a page
    examines the newest 200 messages, and prints how far back it has searched.

    With --ids, the command prints the messages with the ids in a file, and those to its addresses and
    numbers. The file may also be a CSV file of this command.

    A message is listed once a worker has claimed it, or once it waits to be sent.

    Example: mailroom list --status bounced --stage prod

    Example: mailroom list --status not-sent --template prices --since 2026-11-17 --until 2026-11-17 --csv
    """
    typed = (channel, status, template, campaign, "yes" if arrived_twice else "", since, until)
    _print(stage, "", typed, cursor, ids_file, as_csv=as_csv, as_json=as_json)


def find(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="An address, a number, a token or an id.")],
    stage: Stage = "dev",
    *,
    channel: filters.Channel = "",
    status: filters.Status = "",
    template: filters.Template = "",
    campaign: filters.Campaign = "",
    since: filters.Since = "",
    until: filters.Until = "",
    cursor: Cursor = "",
    as_csv: filters.AsCsv = False,
    as_json: AsJson = False,
) -> None:
    """Print the messages to a recipient, the newest first, 50 per page; or the messages with an id.

    Spellings of the same address or number give the same messages. TEXT may be the X-Correlation-ID of a
    message. If it is a part of an id, or a provider's id, a page examines the newest 200 messages. A message
    is found once a worker has claimed it, or once it waits to be sent. --since, --until and --status have the
    same values as those of mailroom list. Exit code 1: no message was found.

    Example: mailroom find ada@example.com --stage prod
    """
    typed = (channel, status, template, campaign, "", since, until)
    answer = _print(stage, text, typed, cursor, as_csv=as_csv, as_json=as_json)
    raise typer.Exit(0 if answer.messages or answer.more else 1)


def _print(
    stage: str,
    text: str,
    typed: Sequence[str],
    cursor: str,
    ids_file: Path | None = None,
    *,
    as_csv: bool,
    as_json: bool,
) -> FoundAnswer:
    with aws_faults(stage):
        if as_csv and (as_json or cursor):
            raise Refused("--csv prints all messages; leave out --json and --cursor.")
        session = aws_session()
        criteria = MessageFilter(*typed[:-2], **filters.bounds(typed[-2], typed[-1], time.time()))
        finder = finder_of(session, stage)
        if finder is None:
            raise Refused(NO_SEARCH.format(stage=stage))
        lookup = Lookup(session, stage, finder, text, criteria)
        failures: Iterator[Failure]
        with errors.status("reading the ledger"):
            if ids_file is not None:
                messages, missing = listed(reader_of(session, stage), finder, text_of(ids_file), criteria)
                failures = (failure_of(message, full=True) for message in messages)
                answer = FoundAnswer(stage, "list", [*map(row_of, messages)], False, None, None, None)
                print_line(f"{quantity(len(missing), 'entry has', 'entries have')} no message.", "", errors)
            else:
                answer, failures = lookup.answer(cursor), lookup.every()
        if as_csv:
            print_csv(failures)
            return answer
    show = partial(_show, text=text, filtered=criteria != MessageFilter() and not cursor)
    print_answer(answer, show, as_json=as_json)
    return answer


class Containing(MessageFilter, frozen=True):
    """Filter of messages whose id contains a text, or whose provider's id is the text."""

    text: str = ""

    def takes(self, message: MessageStatus) -> bool:
        return super().takes(message) and (self.text in message.id or self.text == message.provider_id)


class StageFinder(Finder, frozen=True):
    """Search for messages of a deployed stage. It also knows the ledger's index of failures and dead letters,
    which contains only such messages, and the runs of campaigns."""

    stage: str = ""

    def newest(self, filter_: Filter = ANY, cursor: str = "", size: int = PAGE) -> FoundPage:
        if filter_.status not in (*FAILED, DEAD_LETTER):
            return super().newest(filter_, cursor, size)
        filter_.check(cursor)
        # A message fails after it was put, so only the beginning of the span is a bound for the index.
        span = (filter_.since or "0", cursor or "9")
        items, end = failed_round(self.client, self.stage, [filter_.status], span)
        first, last = filter_.span("")
        pairs = ((item, f"{item.get('putAt', 0):013d}") for item in items)
        places = ((item["failed_at"], item if first <= put_at < last else {}) for item, put_at in pairs)
        return page_of(places, end, filter_, cursor, size)

    def partitions(self, filter_: Filter) -> Sequence[str]:
        campaign = filter_.campaign
        needs_runs = campaign and not ("#" in campaign or filter_.template)
        runs = filters.latest_runs(self.client, self.stage, campaign, RUNS) if needs_runs else []
        of_runs = [partition for run in runs for partition in partitions_of("run", f"{campaign}#{run.run}")]
        return of_runs or super().partitions(filter_)


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

    def answer(self, cursor: str) -> FoundAnswer:
        """Return a page of the messages. Raises Refused for an invalid cursor, and if the result is empty
        because the filter has a name that does not exist."""
        page, by = self._page(cursor)
        rows = [row_of(message) for message in page.messages]
        queued_count = None
        if not (rows or page.cursor):
            filters.check_names(self.session, self.stage, self.criteria, self.criteria.statuses)
            queued_count = queued(self.session, self.stage)
        after = page.cursor
        return FoundAnswer(self.stage, by, rows, after is not None, after, page.looked_back_to, queued_count)

    def every(self) -> Iterator[Failure]:
        """Yield all messages, with the reasons why they were not sent. A page is read when its messages are
        taken."""
        cursor: str | None = ""
        while cursor is not None:
            page, _ = self._page(cursor)
            yield from (failure_of(message, full=True) for message in page.messages)
            cursor = page.cursor

    def _page(self, cursor: str) -> tuple[FoundPage, By]:
        finder, criteria = self.finder, self.criteria
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
                return finder.newest(criteria, cursor), "newest"
            page = finder.to(text, criteria, cursor)
            if not (by_id or page.messages or page.cursor or _is_whole(text, finder.default_region)):
                return finder.newest(Containing(**structs.asdict(criteria), text=text), cursor), "part"
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
    return structs.replace(row, put_at=times.get("putAt"), dead_lettered_at=times.get("dead_lettered_at"))


def _cells(message: MessageRow) -> tuple[str | Text, ...]:
    put_at = short(message.put_at).removesuffix(" UTC") if message.put_at else ""
    lines = dict.fromkeys((message.headline, f"to {message.recipient}", message.id))
    status = Text(message.standing, STYLES.get(message.status, ""))
    return stacked(put_at, message.event_type), status, stacked(*lines)


def _show(answer: FoundAnswer, *, text: str, filtered: bool) -> None:
    columns = (whole("put (UTC), channel"), narrow("status", 11), fold("message", ratio=1))
    if answer.messages:
        screen.print(table_of(*columns, rows=map(_cells, answer.messages)))
    count = len(answer.messages)
    messages = quantity(count, "message") if count else "No messages"
    if count and filtered and not answer.cursor:
        messages = f"{count:,} of {messages}"
    which = {
        "newest": "",
        "list": " of the list",
        "id": f" with the id {text}",
        "part": f" with {text} in an id",
    }.get(answer.by, f" to {text}")
    sentence = f"{messages}{which} in {answer.stage}"
    if answer.looked_back_to and len(answer.messages) < PAGE:
        sentence += f", looked back to {short(answer.looked_back_to)}"
    screen.print(plain(f"{sentence}{unlisted(answer.queued)}."), soft_wrap=True)
    if answer.cursor:
        screen.print(plain(f"More: --cursor {answer.cursor}"), soft_wrap=True)
    if answer.by == "part" and not answer.messages:
        print_line(PARTS)
