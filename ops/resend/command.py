"""`resend`: its options, what it says first, and what it asks."""

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Annotated

import boto3
import typer
from msgspec import Struct
from rich import box
from rich.table import Table

from ops.resend.deployed import Deployed
from ops.resend.following import Following
from ops.resend.ids import asked_for
from ops.resend.resending import Resending
from ops.resend.resent import Resent
from ops.screen import AsJson, Refused, Stage, Yes, aws_faults, errors, plain, print_json, screen
from ops.steps import Advance, bar

UNASKED = 10
"""So many are sent again without a question."""
_SHOWN = 50


class Answer(Struct, frozen=True):
    """What became of the messages, one by one and counted. Of a dry run the ones that would be sent again are
    `ready`."""

    stage: str
    dry_run: bool
    counts: dict[str, int]
    messages: list[Resent]


def resend(
    ids: Annotated[
        list[str], typer.Argument(help="The messages' ids; - reads ids, or another command's --json.")
    ],
    stage: Stage = "dev",
    *,
    channel: Annotated[str | None, typer.Option(help="That channel's alone: its event_type.")] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Also what has arrived, was cancelled or would be suppressed.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what each is and whether it can be sent again.")
    ] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Send messages again that failed, bounced or were held, with what the mailbox has of them now.

    Says first what each is, and why; asks first where there are more than 10, or one may arrive twice. What
    is on its way is left alone, and what has arrived is refused without --force. To run it again, or twice at
    once, sends nothing twice: what has changed since it was looked at is refused.

    Exit code 1: some of them were not sent again. 2: it could not be done, or what is piped in is of another
    stage, or cut off by its --limit.

    Example: mailroom failures --since 2h --stage prod --json | mailroom resend - --stage prod --yes
    """
    with aws_faults(stage):
        asked = asked_for(ids, channel, sys.stdin, stage)
        resending = Resending(Deployed.of(boto3.Session(), stage), force=force)
        operator = _Operator(stage, yes=yes, quiet=as_json, piped="-" in ids)
        done = resending.run(asked, operator, dry_run=dry_run)
    answer = Answer(stage, dry_run, _counts(done), done)
    if as_json:
        print_json(answer)
    else:
        _say(answer, operator.shown)
    left = [each for each in done if each.result not in ("ready", "resent")]
    raise typer.Exit(1 if left else 0)


class _Operator(Following):
    """Sees bars, reads what each is, and is asked."""

    def __init__(self, stage: str, *, yes: bool, quiet: bool, piped: bool) -> None:
        self.shown: Sequence[Resent] = ()
        """What each was when it was looked at."""
        self._stage = stage
        self._yes = yes
        self._quiet = quiet
        self._piped = piped

    def step(self, what: str, total: int, done: int = 0) -> AbstractContextManager[Advance]:
        return bar(what, total, done, quiet=self._quiet)

    def looked(self, messages: Sequence[Resent]) -> None:
        self.shown = messages
        if not self._quiet:
            _show(messages)

    def allow(self, ready: Sequence[Resent]) -> None:
        if not self._yes:
            _ask(ready, self._stage, piped=self._piped)


def _ask(ready: Sequence[Resent], stage: str, *, piped: bool) -> None:
    twice = sum(each.may_arrive_twice for each in ready)
    if len(ready) <= UNASKED and not twice:
        return
    risk = f" {twice:,} of them may arrive twice." if twice else ""
    if piped:
        raise Refused(f"{_messages(len(ready))} would be sent again.{risk} Nobody can be asked: use --yes.")
    typer.confirm(f"Send {_messages(len(ready))} of {stage} again?{risk}", abort=True, err=True)


def _messages(count: int) -> str:
    return "1 message" if count == 1 else f"{count:,} messages"


def _counts(messages: Iterable[Resent]) -> dict[str, int]:
    return dict(sorted(Counter(each.result for each in messages).items()))


def _show(looked: Sequence[Resent]) -> None:
    """What each is; where there are too many, those that cannot be sent first."""
    ordered = sorted(looked, key=lambda each: each.result == "ready")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("id", overflow="fold")
    table.add_column("channel")
    table.add_column("can be sent")
    table.add_column("what it is", overflow="fold", ratio=1)
    for each in ordered[:_SHOWN]:
        can = "again" if each.result == "ready" else "no"
        table.add_row(plain(each.id), plain(each.event_type), can, plain(each.why))
    if looked:
        screen.print(table)
    if len(ordered) > _SHOWN:
        screen.print(f"and {len(ordered) - _SHOWN:,} more; --json has all.")


def _say(answer: Answer, shown: Sequence[Resent]) -> None:
    """What became of them; by name those that were to be sent again and were not."""
    known = set(shown)
    for each in answer.messages:
        if each.result in ("unqueued", "refused") and each not in known:
            errors.print(plain(f"{each.id} ({each.event_type}): {each.why}"), style="red", soft_wrap=True)
    counted = ", ".join(f"{count:,} {result}" for result, count in answer.counts.items())
    screen.print(f"{_messages(len(answer.messages))} of {answer.stage}{': ' if counted else ''}{counted}.")
