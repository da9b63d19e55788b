"""`status`: all that is known of a message."""

import time
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import boto3
import typer
from rich import box
from rich.table import Table

from ops.messages.sending import reader_of
from ops.messages.standing import Standing, Status, standing
from ops.screen import AsJson, Stage, aws_faults, plain, print_json, screen
from ops.times import short

_STYLES = {
    **dict.fromkeys(("sent", "delivered"), "green"),
    **dict.fromkeys(("failed", "bounced", "complained", "undelivered"), "red"),
}


def status(
    id_: Annotated[str, typer.Argument(metavar="ID", help="The message's id.")],
    stage: Stage = "dev",
    *,
    channel: Annotated[str | None, typer.Option(help="Where several channels have that id.")] = None,
    as_json: AsJson = False,
) -> None:
    """Say where a message is, since when, what was tried and told, and what to do next.

    It prints whom the message is for, and nothing of what it says. Exit code 1: there is no such message, or
    it is past its retention.

    Example: mailroom status order-42 --stage prod
    """
    with aws_faults(stage):
        found = reader_of(boto3.Session(), stage).find(id_, channel)
    now = time.time()
    answer = Status(id_, stage, [standing(each, stage, now) for each in found])
    if as_json:
        print_json(answer)
    elif answer.messages:
        for each in answer.messages:
            show(each)
    else:
        there = f"{channel} {id_}" if channel else id_
        screen.print(plain(f"There is no message {there} in {stage}."), soft_wrap=True)
    raise typer.Exit(0 if answer.messages else 1)


def show(message: Standing) -> None:
    """Print one message."""
    screen.print(plain(f"{message.id}  ({message.event_type})"), style="bold", soft_wrap=True)
    facts = Table(box=None, show_header=False, pad_edge=False)
    facts.add_column(style="dim")
    facts.add_column(overflow="fold")
    since = f" since {short(message.since)}" if message.since else ""
    facts.add_row("status", plain(message.status + since), style=_STYLES.get(message.status))
    for name, value in _facts(message):
        facts.add_row(name, plain(value))
    screen.print(facts)
    for title, entries in (("recipients", message.recipients), ("callbacks", message.callbacks)):
        if entries:
            screen.print(_entries(title, entries))
    if message.history:
        screen.print(_history(message.history))
    for line in message.advice:
        screen.print(plain(f"→ {line}"), soft_wrap=True)


def _facts(message: Standing) -> Iterator[tuple[str, str]]:
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


def _history(history: list[dict[str, Any]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("history", "status", "code"):
        table.add_column(heading, overflow="fold")
    for each in history:
        table.add_row(short(each.get("at")), plain(f"{each.get('status')}"), plain(f"{each.get('code', '')}"))
    return table


def _entries(title: str, entries: Mapping[str, Mapping[str, Any]]) -> Table:
    """What became of each recipient, or callback, with all that was told of it."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in (title, "status", ""):
        table.add_column(heading, overflow="fold")
    for name, entry in entries.items():
        more = ", ".join(f"{key} {value}" for key, value in entry.items() if key != "status")
        table.add_row(plain(name), plain(f"{entry.get('status', '')}"), plain(more))
    return table
