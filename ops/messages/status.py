"""`status`: where a message is, what became of it, and what an operator can do about it."""

import dataclasses
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any

import boto3
import msgspec
import typer
from msgspec import Struct
from rich.table import Column, Table

from mailroom.ledger.reader import LedgerReader, MessageStatus
from ops.messages.advice import advice
from ops.messages.timeline import timeline
from ops.options import AsJson, Stage
from ops.screen import aws_faults, fold, plain, print_json, print_line, screen, table_of
from ops.stage import name as stage_name
from ops.times import exactly, short

_STYLES = {
    **dict.fromkeys(("sent", "delivered"), "green"),
    **dict.fromkeys(("failed", "bounced", "complained", "undelivered"), "red"),
}


class MessageView(Struct, frozen=True, kw_only=True):
    """One message. Times are ISO 8601 in UTC. `since` is when it came to its status, where that is known;
    `advice` says what it means and what to do next."""

    id: str
    event_type: str
    status: str
    since: str | None
    attempts: int
    to: str | list[str] | None
    error: dict[str, str] | None
    trouble: dict[str, str] | None
    provider: str | None
    provider_id: str | None
    scheduled_for: str | None
    updated_at: str | None
    times: dict[str, str]
    details: dict[str, Any]
    history: list[dict[str, Any]]
    callbacks: dict[str, dict[str, Any]]
    recipients: dict[str, dict[str, Any]]
    advice: list[str]


class Status(Struct, frozen=True):
    """The answer of `status`: the messages of that id, one a channel; empty: there is no such message."""

    id: str
    stage: str
    messages: list[MessageView]


def status(
    id_: Annotated[str, typer.Argument(metavar="ID", help="The message's id.")],
    stage: Stage = "dev",
    *,
    channel: Annotated[
        str | None, typer.Option(help="The channel, if several channels have that id.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print a message's status, its attempts, what the provider said, and what to do next.

    The command prints the recipients of the message, and never the content. Exit code 1: there is no such
    message, or its retention is over.

    Example: mailroom status order-42 --stage prod
    """
    with aws_faults(stage):
        found = reader_of(boto3.Session(), stage).find(id_, channel)
    now = time.time()
    if as_json:
        print_json(Status(id_, stage, [view_of(each, stage, now) for each in found]))
    elif found:
        for each in found:
            show(each, stage, now)
    else:
        there = f"{channel} {id_}" if channel else id_
        print_line(f"There is no message {there} in {stage}.")
    raise typer.Exit(0 if found else 1)


def reader_of(session: boto3.Session, stage: str) -> LedgerReader:
    """Reads a stage's ledger and mailbox."""
    tables = stage_name(stage, "ledger"), stage_name(stage, "mailbox")
    return LedgerReader(session.client("dynamodb"), *tables)


def view_of(found: MessageStatus, stage: str, now: float) -> MessageView:
    """A message with its advice, at `now` (epoch seconds)."""
    since = _since(found)
    said = list(advice(found, stage, now, since))
    return msgspec.convert({**dataclasses.asdict(found), "since": since, "advice": said}, MessageView)


def show(found: MessageStatus, stage: str, now: float) -> None:
    """Print one message as it is at `now` (epoch seconds)."""
    message = view_of(found, stage, now)
    print_line(f"{message.id}  ({message.event_type})", "bold")
    facts = table_of(Column(style="dim"), fold(), box=None, show_header=False)
    since = f" since {short(message.since)}" if message.since else ""
    facts.add_row("status", plain(message.status + since), style=_STYLES.get(message.status))
    for name, value in _facts(message):
        facts.add_row(name, plain(value))
    screen.print(facts)
    life = (
        (
            short(each.at) if each.at else "",
            "" if each.after is None else exactly(each.after),
            each.what,
            each.detail,
        )
        for each in timeline(found, now)
    )
    screen.print(_table(("life", "after", "", ""), life))
    if message.recipients:
        entries = (_entry(*each) for each in message.recipients.items())
        screen.print(_table(("recipients", "status", ""), entries))
    for line in message.advice:
        print_line(f"→ {line}")


def _since(found: MessageStatus) -> str | None:
    """When it last came to its status: the history says it of an outcome and of a retry."""
    for entry in reversed(found.history):
        if entry.get("status") == found.status and "at" in entry:
            return str(entry["at"])
    if found.status == "sending":
        return found.times.get("startedAt", found.updated_at)
    return found.times.get(f"{found.status}At", found.updated_at)


def _facts(message: MessageView) -> Iterator[tuple[str, str]]:
    """What there is to say, in the order in which one asks."""
    to, error, trouble = message.to, message.error, message.trouble
    facts = {
        "to": ", ".join(to) if isinstance(to, list) else to,
        "error": error and f"{error.get('message')} ({error.get('code')})",
        "trouble": trouble and f"{trouble.get('message')} ({trouble.get('code')})",
        "provider": message.provider and f"{message.provider} {message.provider_id or ''}".strip(),
        "attempts": message.attempts and f"{message.attempts} ended",
        **{name: f"{detail}" for name, detail in message.details.items()},
        "changed": message.updated_at and short(message.updated_at),
    }
    return ((name, f"{value}") for name, value in facts.items() if value)


def _table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> Table:
    table = table_of(*map(fold, headings))
    for row in rows:
        table.add_row(*map(plain, row))
    return table


def _entry(name: str, entry: Mapping[str, Any]) -> tuple[str, str, str]:
    """A recipient: its status, and all other details."""
    more = ", ".join(f"{key} {value}" for key, value in entry.items() if key != "status")
    return name, f"{entry.get('status', '')}", more
