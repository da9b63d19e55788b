"""`find` and `list`: messages by whom they are for, and the newest ones, out of the table `search`."""

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import Struct
from rich.text import Text

from mailroom.aws.secret import CachedSecret
from mailroom.errors import Invalid
from mailroom.ledger.reader import MessageStatus
from mailroom.message.message import MAX_ID_BYTES
from mailroom.search.finder import MOST_LOOKED_AT, Filter, Finder, FoundPage
from mailroom.search.rows import Rows
from mailroom_ops.messages.status import STYLES, first_recipient, reader_of
from mailroom_ops.messages.waiting import WAITS_FOR, queued, unlisted
from mailroom_ops.options import AsJson, Stage
from mailroom_ops.screen import (
    Refused,
    aws_faults,
    errors,
    fold,
    plain,
    print_answer,
    screen,
    table_of,
    whole,
)
from mailroom_ops.stage import aws_session, function_settings
from mailroom_ops.stage import name as stage_name
from mailroom_ops.times import short

if TYPE_CHECKING:
    import boto3

NO_SEARCH = (
    "{stage} has no search: its messages are found by their ids alone. Deploy it by this version, and with "
    "mailroom.{stage}.search true in cdk.json."
)

Channel = Annotated[str, typer.Option(help="Only messages of this channel.")]
Status = Annotated[str, typer.Option(help="Only messages with this status, such as bounced.")]
Template = Annotated[str, typer.Option(help="Only messages of this template.")]
Campaign = Annotated[
    str,
    typer.Option(
        help="Only messages of this campaign; NAME#RUN: of that run, which wait or have an outcome."
    ),
]
Cursor = Annotated[str, typer.Option(help="Go on with the page after this one; the page before names it.")]


class MessageRow(Struct, frozen=True):
    """One message in a list. Times are ISO 8601 in UTC; None: it has none, or the ledger does not know."""

    put_at: str | None
    id: str
    event_type: str
    status: str
    waits_for: str
    """Reason of the wait; empty if the message does not wait."""
    template: str | None
    subject: str | None
    to: str | list[str] | None
    updated_at: str | None

    @property
    def recipient(self) -> str:
        """The first recipient, and how many more there are."""
        return first_recipient(self.to)

    @property
    def standing(self) -> str:
        """Status of the message, or what it waits for."""
        return f"waits for {WAITS_FOR[self.waits_for]}" if self.waits_for else self.status

    @property
    def headline(self) -> str:
        """What people know it by."""
        return self.subject or self.template or self.id


class FoundAnswer(Struct, frozen=True):
    """The answer of `find` and `list`: the newest first. `more`: there are others; `cursor` then asks for
    them. `looked_at` is how many were looked at for this page. `queued`: about how many messages lie in the
    queues and are not listed yet. They are counted only if no message was found."""

    stage: str
    messages: list[MessageRow]
    more: bool
    cursor: str | None
    looked_at: int
    queued: int | None


def list_(
    stage: Stage = "dev",
    *,
    channel: Channel = "",
    status: Status = "",
    template: Template = "",
    campaign: Campaign = "",
    cursor: Cursor = "",
    as_json: AsJson = False,
) -> None:
    """Print the newest messages, 50 a page. With a filter, a page looks at 1,000 messages at most.

    A message is in the list once a worker has claimed it, or once it waits.

    Example: mailroom list --status bounced --stage prod
    """
    wanted = Filter(channel, status, template, campaign)
    with aws_faults(stage):
        session = aws_session()
        finder = finder_of(session, stage)
        with errors.status("reading the ledger"):
            answer = _answer(session, stage, asked(partial(finder.newest, wanted, cursor)), [])
    print_answer(answer, partial(_show, which=f"in {stage}"), as_json=as_json)


def find(
    text: Annotated[
        str, typer.Argument(metavar="RECIPIENT", help="An address, a number, a token, or an id.")
    ],
    stage: Stage = "dev",
    *,
    channel: Channel = "",
    status: Status = "",
    template: Template = "",
    campaign: Campaign = "",
    cursor: Cursor = "",
    as_json: AsJson = False,
) -> None:
    """Print the messages to somebody, the newest first, 50 a page; or the messages with an id.

    All spellings of an address or a number are one recipient. A message is found once a worker has claimed
    it, or once it waits.

    Example: mailroom find ada@example.com --stage prod
    """
    wanted = Filter(channel, status, template, campaign)
    with aws_faults(stage):
        session = aws_session()
        finder = finder_of(session, stage)
        with errors.status("reading the ledger"):
            by_id = [] if cursor else with_id(session, stage, text, wanted)
            answer = _answer(session, stage, asked(partial(finder.to, text, wanted, cursor)), by_id)
    print_answer(answer, partial(_show, which=f"to {text} in {stage}"), as_json=as_json)
    raise typer.Exit(0 if answer.messages or answer.more else 1)


class SearchFacts(Struct, frozen=True, kw_only=True, rename="upper"):
    """What is asked of the API's environment."""

    ledger_table: str = ""
    search_table: str = ""
    search_key_name: str = ""
    default_region: str = ""


def search_of(session: "boto3.Session", stage: str) -> tuple[SearchFacts, Rows] | None:
    """What the stage knows of its search, and what makes its rows; None: it has none. Raises NotDeployed."""
    known = function_settings(session.client("lambda"), stage_name(stage, "messages-api"), SearchFacts)
    if not known.search_table:
        return None
    return known, Rows(CachedSecret(session.client("secretsmanager"), known.search_key_name, time.time))


def finder_of(session: "boto3.Session", stage: str) -> Finder:
    """Finds messages of a stage. Raises NotDeployed, and Refused where it has no search."""
    search = search_of(session, stage)
    if search is None:
        raise Refused(NO_SEARCH.format(stage=stage))
    known, rows = search
    dynamodb = session.client("dynamodb")
    return Finder(dynamodb, known.search_table, known.ledger_table, rows, known.default_region)


def with_id(session: "boto3.Session", stage: str, id_: str, wanted: Filter) -> list[MessageStatus]:
    """The messages of that id."""
    if not 0 < len(id_.encode()) <= MAX_ID_BYTES:
        return []
    return [each for each in reader_of(session, stage).find(id_) if wanted.takes(each)]


def asked(ask: Callable[[], FoundPage]) -> FoundPage:
    """What a finder answers. Raises Refused for a cursor that is none."""
    try:
        return ask()
    except Invalid as fault:
        raise Refused(f"--{fault.field}: {fault.problem}.") from None


def row_of(found: MessageStatus) -> MessageRow:
    """A message as lists show it."""
    return MessageRow(
        found.times.get("putAt"),
        found.id,
        found.event_type,
        found.status,
        found.waits_for,
        found.template,
        found.subject,
        found.to,
        found.updated_at,
    )


def _answer(session: "boto3.Session", stage: str, page: FoundPage, first: list[MessageStatus]) -> FoundAnswer:
    known = {(each.id, each.event_type): each for each in (*first, *page.messages)}
    rows = [row_of(each) for each in known.values()]
    count = None if rows or page.cursor else queued(session, stage)
    return FoundAnswer(stage, rows, page.cursor is not None, page.cursor, page.looked_at, count)


def _cells(message: MessageRow) -> tuple[str | Text, ...]:
    put_at = short(message.put_at).removesuffix(" UTC") if message.put_at else ""
    lines = dict.fromkeys((message.headline, f"to {message.recipient}", message.id))
    status = Text(message.standing.replace("waits for ", "waits for\n"), STYLES.get(message.status, ""))
    return put_at, message.event_type, status, Text("\n").join(map(plain, lines))


def _show(answer: FoundAnswer, *, which: str) -> None:
    columns = (whole("put (UTC)"), whole("channel"), whole("status"), fold("message", ratio=1))
    if answer.messages:
        screen.print(table_of(*columns, rows=map(_cells, answer.messages)))
    count = f"{len(answer.messages):,}" if answer.messages else "No"
    said = f"{count} {'message' if len(answer.messages) == 1 else 'messages'} {which}"
    if answer.looked_at >= MOST_LOOKED_AT:
        said += f" among {answer.looked_at:,} that were looked at"
    screen.print(plain(f"{said}{unlisted(answer.queued)}."), soft_wrap=True)
    if answer.cursor:
        screen.print(plain(f"More: --cursor {answer.cursor}"), soft_wrap=True)
