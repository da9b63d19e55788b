"""The command `messages list`: prints messages, or the reasons why messages fail."""

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from msgspec import structs
from rich.text import Text

from mailroom.errors import quantity
from mailroom.search.finder import PAGE
from mailroom_ops.messages import filter_options, filters
from mailroom_ops.messages.failed_messages import Failure, failure_of, masked_error, recipient
from mailroom_ops.messages.failures_csv import csv_lines
from mailroom_ops.messages.filters import MessageFilter
from mailroom_ops.messages.listed import listed, text_of
from mailroom_ops.messages.lookup import PARTS, FoundAnswer, Lookup, MessageRow, finder_of, row_of
from mailroom_ops.messages.reasons import reasons_of
from mailroom_ops.messages.reasons import show as show_reasons
from mailroom_ops.messages.status import STYLES
from mailroom_ops.messages.views import reader_of
from mailroom_ops.messages.waiting import unlisted
from mailroom_ops.shared.deployed_stage import aws_session
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
    print_unchanged,
    screen,
    stacked,
    table_of,
    whole,
)
from mailroom_ops.shared.times import short

NO_SEARCH = (
    "{stage} has no search, so its messages can only be found by their ids. Deploy it with this version, and "
    "with mailroom.{stage}.search true in cdk.json."
)
ArrivedTwice = Annotated[bool, typer.Option("--twice", help="Only messages that may have arrived twice.")]
Cursor = Annotated[str, typer.Option(help="Print the page at this cursor, which the previous page printed.")]


def list_(
    text: Annotated[
        str, typer.Argument(metavar="[TEXT]", help="An address, a number, a token or an id.")
    ] = "",
    stage: Stage = "dev",
    *,
    channel: filter_options.Channel = "",
    status: filter_options.Status = "",
    template: filter_options.Template = "",
    campaign: filter_options.Campaign = "",
    reason: filter_options.Reason = "",
    domain: filter_options.Domain = "",
    arrived_twice: ArrivedTwice = False,
    ids_file: Annotated[
        Path | None, typer.Option("--ids", help="A file with ids, addresses or numbers, one per line.")
    ] = None,
    since: filter_options.Since = "",
    until: filter_options.Until = "",
    limit: filter_options.Limit = None,
    cursor: Cursor = "",
    by_reason: Annotated[
        bool,
        typer.Option("--reasons", help="Print the reasons why messages fail or are tried again, instead."),
    ] = False,
    mask: Annotated[
        bool, typer.Option("--mask", help="Mask addresses and numbers, and print no subjects.")
    ] = False,
    as_csv: filter_options.AsCsv = False,
    as_json: AsJson = False,
) -> None:
    """List messages, the newest first: all, or those that match.

    TEXT: the messages to an address, a number or a token, in all its spellings, or the message with an id.
    TEXT may be the X-Correlation-ID of a message, a part of an id, or a provider's id. Exit code 1: no
    message was found.

    --status: scheduled, sending, retrying, sent, delivered, failed, suppressed, cancelled, undelivered,
    bounced or complained. failure means those that failed, bounced, were not delivered or caused a complaint.
    not-sent means everything but sent, delivered and complained, so also what waits. dead-letter means the
    messages in dead-letter queues.

    --since and --until are compared with the time of the put; in a list of failures or dead letters, with
    the time when the message failed. Without a run, --campaign lists its latest 3 runs.

    Messages to a recipient, of a run, of a template, and with a status of failure are indexed. With another
    filter, a page examines the newest 200 messages, and prints how far back it has searched. --limit reads on
    until it has as many, also for --json; --csv prints all. A message is listed once a worker has claimed it,
    or once it waits to be sent.

    --ids: the messages with the ids in a file, and those to its addresses and numbers. The file may also be a
    CSV file of this command.

    --reasons: if an alarm rings because many messages fail or are not accepted, this prints the reason of
    most of them. Equal reasons are counted together, among the newest 5,000 failures since --since (default:
    24h, or the start of the run in --campaign), and the newest 1,000 messages that are tried again. Addresses
    and numbers are masked.

    Example: mailroom messages list ada@example.com --stage prod

    Example: mailroom messages list --status failure --since 2d --channel mail --stage prod

    Example: mailroom messages list --status not-sent --template prices --since 2026-11-17 --csv

    Example: mailroom messages list --reasons --since 1h --stage prod
    """
    with aws_faults(stage):
        if as_csv and (as_json or cursor):
            raise Refused("--csv prints all messages; leave out --json and --cursor.")
        session, span = aws_session(), filters.bounds(since, until, time.time())
        criteria = MessageFilter(
            channel,
            status,
            template,
            campaign,
            "yes" * arrived_twice,
            reason=reason,
            domain=domain,
            **span,
        )
        with errors.status("reading the ledger"):
            if by_reason:
                if any((text, ids_file, until, cursor, as_csv, arrived_twice)):
                    raise Refused("--reasons counts all failures; use only --since and filters with it.")
                counted = reasons_of(session, stage, criteria, since, limit or PAGE)
                print_answer(counted, show_reasons, as_json=as_json)
                return
            lookup = Lookup(session, stage, finder_of(session, stage), text, criteria)
            if lookup.finder is None and (text or not criteria.failing):
                raise Refused(NO_SEARCH.format(stage=stage))
            answer, failures = _found(lookup, ids_file, cursor, limit, full=not mask)
        if as_csv:
            print_unchanged(csv_lines(failures))
    if mask:
        answer = structs.replace(answer, messages=[*map(_masked, answer.messages)])
    if not as_csv:
        show = partial(
            _show, text=text, limit=limit or PAGE, filtered=criteria != MessageFilter() and not cursor
        )
        print_answer(answer, show, as_json=as_json)
    raise typer.Exit(1 if text and not (answer.messages or answer.more) else 0)


def _found(
    lookup: Lookup, ids_file: Path | None, cursor: str, limit: int | None, *, full: bool
) -> tuple[FoundAnswer, Iterator[Failure]]:
    """Return the answer, and an iterator over all messages with the reasons why they were not sent."""
    if ids_file is None:
        return lookup.answer(cursor, limit), lookup.every(full=full)
    reader = reader_of(lookup.session, lookup.stage)
    messages, missing = listed(reader, lookup.finder, text_of(ids_file), lookup.criteria)
    print_line(f"{quantity(len(missing), 'entry has', 'entries have')} no message.", "", errors)
    answer = FoundAnswer(lookup.stage, "list", [*map(row_of, messages)], False, None, None, None)
    return answer, (failure_of(message, full=full) for message in messages)


def _masked(message: MessageRow) -> MessageRow:
    text = masked_error(message.reason, message.message)
    return structs.replace(message, to=recipient(message.to), message=text, subject=None)


def _cells(message: MessageRow) -> tuple[str | Text, ...]:
    put_at = short(message.put_at).removesuffix(" UTC") if message.put_at else ""
    code = f"{message.reason} ({message.field})" if message.field else message.reason
    reason = f"{code}: {message.message}".removesuffix(": ")
    lines = dict.fromkeys((message.headline, f"to {message.recipient}", message.id, reason))
    status = Text(message.standing, STYLES.get(message.status, ""))
    return stacked(put_at, message.event_type), status, stacked(*lines)


def _show(answer: FoundAnswer, *, text: str, filtered: bool, limit: int) -> None:
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
    if answer.looked_back_to and count < limit:
        sentence += f", looked back to {short(answer.looked_back_to)}"
    screen.print(plain(f"{sentence}{unlisted(answer.queued)}."), soft_wrap=True)
    if answer.cursor:
        screen.print(plain(f"More: --cursor {answer.cursor}"), soft_wrap=True)
    if answer.by == "part" and not answer.messages:
        print_line(PARTS)
