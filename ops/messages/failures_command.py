"""`failures`: what failed, and why."""

import itertools
import time
from typing import Annotated

import boto3
import typer
from msgspec import Struct
from rich import box
from rich.table import Table

from mailroom.clock import iso
from ops.messages import masks
from ops.messages.failures import (
    Count,
    Failure,
    Failures,
    channels_of,
    counted,
    failure,
    moment,
    sentence,
)
from ops.screen import AsJson, Stage, aws_faults, errors, plain, print_json, screen
from ops.times import short


class FailuresAnswer(Struct, frozen=True):
    """The answer of `failures`: `failures` the newest first, as many as were asked for, and `more` where
    there are others; with --summary `counts` instead."""

    stage: str
    since: str
    failures: list[Failure]
    more: bool
    counts: list[Count]


def failures(
    stage: Stage = "dev",
    *,
    since: Annotated[str, typer.Option(help="24h, 2d, 90m, 2026-11-20 or an ISO 8601 time.")] = "24h",
    channel: Annotated[str | None, typer.Option(help="That channel's alone.")] = None,
    reason: Annotated[str | None, typer.Option(help="Those with this code alone, such as invalid.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many at most.")] = 50,
    summary: Annotated[bool, typer.Option("--summary", help="Count them by channel and reason.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Addresses and numbers as they are.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print the messages that failed, the newest first, and why; addresses and numbers are masked.

    What failed before its channel was known stands under the name that it gave: --channel NAME. What waits in
    a dead-letter queue has not failed: mailroom dead-letters list. Exit code 0, however many there are.

    Example: mailroom failures --since 2d --channel mail --summary --stage prod
    """
    now = time.time()
    with aws_faults(stage):
        start = moment(since, now)
        reading = Failures(boto3.Session().client("dynamodb"), stage)
        with errors.status("reading the ledger"):
            items = reading.since(start, now, channels_of(channel), reason)
            counts = counted(items) if summary else []
            found = [] if summary else list(itertools.islice(items, limit + 1))
    to, words = (masks.whole, str) if full else (masks.recipient, masks.text)
    shown = [failure(each, to(each.get("to")), words(sentence(each))) for each in found[:limit]]
    answer = FailuresAnswer(stage, iso(start), shown, len(found) > limit, counts)
    if as_json:
        print_json(answer)
    else:
        _show(answer, summary=summary)


def _show(answer: FailuresAnswer, *, summary: bool) -> None:
    span = f"since {short(answer.since)} in {answer.stage}"
    if summary:
        if answer.counts:
            screen.print(_counts(answer.counts))
        screen.print(f"{sum(each.count for each in answer.counts):,} failed {span}.")
        return
    if answer.failures:
        screen.print(_table(answer.failures))
    if answer.more:
        screen.print(f"The newest {len(answer.failures):,} {span}; --limit shows more, --summary counts all.")
    else:
        screen.print(f"{len(answer.failures):,} failed {span}.")


def _table(found: list[Failure]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("when (UTC)", no_wrap=True)
    table.add_column("id", overflow="fold", min_width=12)
    table.add_column("channel")
    table.add_column("to", overflow="fold")
    table.add_column("reason")
    table.add_column("why", overflow="fold", ratio=1, min_width=20)
    for each in found:
        when = short(each.at).removesuffix(" UTC")
        table.add_row(when, *map(plain, (each.id, each.event_type, each.to, each.reason, each.message)))
    return table


def _counts(counts: list[Count]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("failed", justify="right")
    table.add_column("channel")
    table.add_column("reason")
    for each in counts:
        table.add_row(f"{each.count:,}", plain(each.event_type), plain(each.reason))
    return table
