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
from ops.options import AsJson, Stage
from ops.screen import aws_faults, fold, plain, print_json, print_line, screen, table_of
from ops.stage import name as stage_name
from ops.times import short

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
    channel: Annotated[str | None, typer.Option(help="Where several channels have that id.")] = None,
    as_json: AsJson = False,
) -> None:
    """Say where a message is, since when, what was tried, what the provider said, and what to do next.

    It prints the recipients of the message, and never its content. Exit code 1: there is no such message, or
    it is past its retention.

    Example: mailroom status order-42 --stage prod
    """
    with aws_faults(stage):
        found = reader_of(boto3.Session(), stage).find(id_, channel)
    now = time.time()
    answer = Status(id_, stage, [view_of(each, stage, now) for each in found])
    if as_json:
        print_json(answer)
    elif answer.messages:
        for each in answer.messages:
            show(each)
    else:
        there = f"{channel} {id_}" if channel else id_
        print_line(f"There is no message {there} in {stage}.")
    raise typer.Exit(0 if answer.messages else 1)


def reader_of(session: boto3.Session, stage: str) -> LedgerReader:
    """Reads a stage's ledger and mailbox."""
    tables = stage_name(stage, "ledger"), stage_name(stage, "mailbox")
    return LedgerReader(session.client("dynamodb"), *tables)


def view_of(found: MessageStatus, stage: str, now: float) -> MessageView:
    """A message with its advice, at `now` (epoch seconds)."""
    since = _since(found)
    said = list(advice(found, stage, now, since))
    return msgspec.convert({**dataclasses.asdict(found), "since": since, "advice": said}, MessageView)


def show(message: MessageView) -> None:
    """Print one message."""
    print_line(f"{message.id}  ({message.event_type})", "bold")
    facts = table_of(Column(style="dim"), fold(), box=None, show_header=False)
    since = f" since {short(message.since)}" if message.since else ""
    facts.add_row("status", plain(message.status + since), style=_STYLES.get(message.status))
    for name, value in _facts(message):
        facts.add_row(name, plain(value))
    screen.print(facts)
    for title, entries in (("recipients", message.recipients), ("callbacks", message.callbacks)):
        if entries:
            screen.print(_table((title, "status", ""), (_entry(*each) for each in entries.items())))
    if message.history:
        rows = (
            (short(each.get("at")), f"{each.get('status')}", f"{each.get('code', '')}")
            for each in message.history
        )
        screen.print(_table(("history", "status", "code"), rows))
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
        "for": message.scheduled_for and short(message.scheduled_for),
        **{name: short(at) for name, at in sorted(message.times.items(), key=lambda each: each[1])},
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
    """A recipient or a callback: its status, and all other details."""
    more = ", ".join(f"{key} {value}" for key, value in entry.items() if key != "status")
    return name, f"{entry.get('status', '')}", more
