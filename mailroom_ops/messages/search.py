"""The commands `find` and `list`: read the messages of a recipient, and the newest messages, from the table
`search`."""

import re
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
import typer
from msgspec import Struct, structs
from rich.text import Text

from mailroom.channels.contracts import CONTRACTS
from mailroom.clock import Clock, epoch, milliseconds
from mailroom.errors import Invalid, quantity
from mailroom.ledger.status_reader import MessageStatus, of_ledger
from mailroom.message.address import bare, forms_of
from mailroom.message.message import Key, Reference
from mailroom.message.outcome import FAILED
from mailroom.search.finder import ANY, PAGE, SECONDS, Filter, Finder, FoundPage
from mailroom_ops.messages.failed_messages import AHEAD, days, failed
from mailroom_ops.messages.filters import Campaign, Channel, Status, Template, check_names
from mailroom_ops.messages.status import STYLES, first_recipient, reader_of
from mailroom_ops.messages.waiting import WAITS_FOR, queued, unlisted
from mailroom_ops.shared.deployed_stage import aws_session, search_of
from mailroom_ops.shared.options import AsJson, Stage
from mailroom_ops.shared.screen import (
    Refused,
    aws_faults,
    errors,
    fold,
    plain,
    print_answer,
    print_line,
    screen,
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
By = Literal["newest", "id", "recipient", "part"]
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
    channel: Channel = "",
    status: Status = "",
    template: Template = "",
    campaign: Campaign = "",
    arrived_twice: ArrivedTwice = False,
    cursor: Cursor = "",
    as_json: AsJson = False,
) -> None:
    """Print the newest messages, 50 per page.

    With a filter, the command searches for up to two seconds, and prints how far back it has searched. A
    search by a status of failure, such as bounced, is faster, because failures are indexed.

    A message is listed once a worker has claimed it, or once it waits to be sent.

    Example: mailroom list --status bounced --stage prod
    """
    criteria = Filter(channel, status, template, campaign, "yes" if arrived_twice else "")
    _print(stage, "", criteria, cursor, as_json=as_json)


def find(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="An address, a number, a token or an id.")],
    stage: Stage = "dev",
    *,
    channel: Channel = "",
    status: Status = "",
    template: Template = "",
    campaign: Campaign = "",
    cursor: Cursor = "",
    as_json: AsJson = False,
) -> None:
    """Print the messages to a recipient, the newest first, 50 per page; or the messages with an id.

    Spellings of the same address or number give the same messages. TEXT may be the X-Correlation-ID of a
    message. If it is a part of an id, or a provider's id, the command searches the newest messages for up to
    two seconds. A message is found once a worker has claimed it, or once it waits to be sent. Exit code 1: no
    message was found.

    Example: mailroom find ada@example.com --stage prod
    """
    criteria = Filter(channel, status, template, campaign)
    answer = _print(stage, text, criteria, cursor, as_json=as_json)
    raise typer.Exit(0 if answer.messages or answer.more else 1)


def _print(stage: str, text: str, criteria: Filter, cursor: str, *, as_json: bool) -> FoundAnswer:
    with aws_faults(stage):
        session = aws_session()
        finder = finder_of(session, stage, time.time)
        if finder is None:
            raise Refused(NO_SEARCH.format(stage=stage))
        with errors.status("reading the ledger"):
            answer = look_up(session, stage, finder, text, criteria, cursor)
    show = partial(_show, text=text, filtered=criteria != ANY and not cursor)
    print_answer(answer, show, as_json=as_json)
    return answer


class Containing(Filter, frozen=True):
    """Filter of messages whose id contains a text, or whose provider's id is the text."""

    text: str = ""

    def takes(self, message: MessageStatus) -> bool:
        return super().takes(message) and (self.text in message.id or self.text == message.provider_id)


class StageFinder(Finder, frozen=True):
    """Search for messages of a deployed stage. If the filter has a status of failure, the search reads the
    ledger's index of failures, which contains only such messages."""

    stage: str = ""
    remembered_seconds: float = 0.0

    def newest(self, filter_: Filter = ANY, cursor: str = "", size: int = PAGE) -> FoundPage:
        if filter_.status not in FAILED:
            return super().newest(filter_, cursor, size)
        filter_.check(cursor)
        begin = self.clock()
        start = last_ms = int(cursor[:13]) if cursor else milliseconds(begin + AHEAD)
        channels = [filter_.event_type] if filter_.event_type else list(CONTRACTS)
        messages: list[MessageStatus] = []
        for day in days(begin - self.remembered_seconds, (start - 1) / 1000):
            midnight, until = epoch(day), (last_ms - 1) / 1000
            for item in failed(self.client, self.stage, midnight, until, channels):
                time_ms, late = int(item["completedAt"]), self.clock() >= begin + SECONDS
                # Failures of the same millisecond are on one page, because a cursor is a time.
                if time_ms < last_ms < start and (late or len(messages) >= size):
                    return FoundPage(messages, _cursor_at(last_ms))
                last_ms, message = time_ms, of_ledger(item)
                messages += [message] if filter_.takes(message) else []
            last_ms = milliseconds(midnight)
            if self.clock() >= begin + SECONDS:
                return FoundPage(messages, _cursor_at(last_ms))
        return FoundPage(messages, None)


def _cursor_at(time_ms: int) -> str:
    """Return the cursor of the failures before a time in epoch milliseconds."""
    return f"{time_ms:013d}#{'0' * 16}"


def finder_of(session: "boto3.Session", stage: str, clock: Clock) -> Finder | None:
    """Return the finder of a stage, or None for a stage without search. Raises NotDeployed."""
    facts, rows = search_of(session, stage)
    if rows is None:
        return None
    dynamodb = session.client("dynamodb")
    region, ttl = facts.default_region, facts.ledger_ttl_seconds
    return StageFinder(dynamodb, facts.search_table, facts.ledger_table, rows, region, clock, stage, ttl)


def look_up(
    session: "boto3.Session", stage: str, finder: Finder | None, text: str, criteria: Filter, cursor: str
) -> FoundAnswer:
    """Return a page of the messages that match a text, or of all messages if the text is empty. Raises
    Refused for an invalid cursor, and if the result is empty because the filter has a name that does not
    exist."""
    page, by = _page(session, stage, finder, text, criteria, cursor)
    rows = [row_of(message) for message in page.messages]
    queued_count = None
    if not (rows or page.cursor):
        check_names(session, stage, criteria)
        queued_count = queued(session, stage)
    cursor_after, reached = page.cursor, page.looked_back_to
    return FoundAnswer(stage, by, rows, cursor_after is not None, cursor_after, reached, queued_count)


def _page(
    session: "boto3.Session", stage: str, finder: Finder | None, text: str, criteria: Filter, cursor: str
) -> tuple[FoundPage, By]:
    text = _MESSAGE_ID_OF_SES.sub(r"\1", _HEADER.sub("", text))
    reference = Reference.found_in(text)
    ids = [text] if reference is None else [text, reference.id]
    find = reader_of(session, stage).find
    by_id = [] if cursor else [message for id_ in ids for message in find(id_) if criteria.takes(message)]
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
    return put_at, message.event_type, status, Text("\n").join(map(plain, lines))


def _show(answer: FoundAnswer, *, text: str, filtered: bool) -> None:
    columns = (whole("put (UTC)"), whole("channel"), whole("status"), fold("message", ratio=1))
    if answer.messages:
        screen.print(table_of(*columns, rows=map(_cells, answer.messages)))
    count = len(answer.messages)
    messages = quantity(count, "message") if count else "No messages"
    if count and filtered and not answer.cursor:
        messages = f"{count:,} of {messages}"
    which = {"newest": "", "id": f" with the id {text}", "part": f" with {text} in an id"}.get(
        answer.by, f" to {text}"
    )
    sentence = f"{messages}{which} in {answer.stage}"
    if answer.looked_back_to and len(answer.messages) < PAGE:
        sentence += f", looked back to {short(answer.looked_back_to)}"
    screen.print(plain(f"{sentence}{unlisted(answer.queued)}."), soft_wrap=True)
    if answer.cursor:
        screen.print(plain(f"More: --cursor {answer.cursor}"), soft_wrap=True)
    if answer.by == "part" and not answer.messages:
        print_line(PARTS)
