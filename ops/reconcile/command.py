"""`reconcile`: its options, what it says first, and what it asks."""

import os
import sys
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated

import boto3
import typer

from ops.reconcile.following import Following
from ops.reconcile.patience import patience_of
from ops.reconcile.reconciling import Reconciling
from ops.reconcile.report import Answer, sentences
from ops.resend.deployed import Deployed
from ops.resend.ids import asked_for
from ops.screen import AsJson, Refused, Stage, Yes, aws_faults, errors, plain, print_json, screen
from ops.steps import Advance, bar
from ops.times import seconds_of, written


def reconcile(
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            help="These messages alone, of which you know that they were never sent; - reads ids, or another "
            "command's --json."
        ),
    ] = None,
    stage: Stage = "dev",
    *,
    channel: Annotated[str | None, typer.Option(help="With ids: that channel's alone.")] = None,
    older_than: Annotated[
        str, typer.Option(help="How long a message may be on its way: as 90s, 15m, 2h, 1d.")
    ] = "15m",
    undated: Annotated[
        bool, typer.Option("--undated", help="Also all that may be older than the ledger remembers.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what there is; put nothing back.")] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Find messages that nobody is on any more, and put them back on their way.

    These are items of the mailbox that the ledger does not know at two looks, as far apart as --older-than
    says, and items of the ledger whose next step is overdue by that. Each is handed to whoever would have had
    it; what is still in a queue is queued twice by that, and sent once. Dead letters are left where they
    lie; what is marked as one goes back once its letter is gone: by its retention, or by a purge.

    With ids nothing else is looked at, and one look is enough. What the ledger may have forgotten goes back
    as well: by naming a message you vouch that it was never sent.

    The look is kept in a file until all is done, so a command that was stopped goes on where it was if it is
    run again within a day, with the same --older-than. A look that is over is used once more for --older-than
    and 10 minutes. It reads both tables as a whole, and only one may run on a machine at a time.

    Exit code 1: something was left that is not on its way, or may not be (a dead letter, what is gone,
    undated or, of ids, not there) or, of a dry run, would be put back. 2: it could not be done.

    Example: mailroom reconcile --stage prod --dry-run
    """
    with aws_faults(stage):
        if channel is not None and not ids:
            raise Refused("--channel says which message an id means: give ids as well, or leave it out.")
        seconds = seconds_of(older_than)
        asked = asked_for(ids, channel, sys.stdin, stage) if ids else None
        deployed = Deployed.of(boto3.Session(), stage)
        patience = patience_of(deployed, seconds)
        if asked is None:
            working = Reconciling.of_stage(deployed, patience, _folder(), time.sleep, vouched=undated)
        else:
            working = Reconciling.of_messages(deployed, patience, asked)
        operator = _Operator(yes=yes, quiet=as_json, piped="-" in (ids or ()))
        answer = working.go(operator, dry_run=dry_run)
    _say(answer, as_json=as_json, named=asked is not None)
    raise typer.Exit(1 if answer.left else 0)


class _Operator(Following):
    """Sees bars, reads what was found, and is asked."""

    def __init__(self, *, yes: bool, quiet: bool, piped: bool) -> None:
        self._yes = yes
        self._quiet = quiet
        self._piped = piped

    def step(self, what: str, total: int, done: int = 0) -> AbstractContextManager[Advance]:
        return bar(what, total, done, quiet=self._quiet)

    def waits(self, unknown: int, seconds: float) -> None:
        if not self._quiet:
            errors.print(
                f"{unknown:,} of the mailbox are unknown to the ledger so far; looking again in "
                f"{written(seconds)}. It may be stopped: run again, it goes on.",
                soft_wrap=True,
            )

    def found(self, answer: Answer) -> None:
        if not self._quiet:
            for sentence in sentences(answer):
                screen.print(plain(sentence), soft_wrap=True)

    def allow(self, answer: Answer) -> None:
        if self._yes:
            return
        many = f"{answer.stuck:,} message{'' if answer.stuck == 1 else 's'}"
        risk = _vouched(answer)
        if self._piped:
            raise Refused(f"{many} would be put back.{risk} Nobody can be asked: use --yes.")
        typer.confirm(f"Put {many} of {answer.stage} back?{risk}", abort=True, err=True)


def _vouched(answer: Answer) -> str:
    if not answer.vouched:
        return ""
    return (
        f" {answer.vouched:,} may be older than the ledger remembers: you vouch that none was ever sent; one "
        "that was is sent again."
    )


def _folder() -> Path:
    """Where a look is kept, by the XDG Base Directory Specification."""
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "mailroom"


def _say(answer: Answer, *, as_json: bool, named: bool) -> None:
    if as_json:
        print_json(answer)
        return
    looked = " and ".join(f"{count:,} of the {table}" for table, count in answer.looked_at.items())
    if named:
        looked = f"{len(answer.messages):,} named"
    if answer.dry_run:
        done = f"{answer.stuck:,} would be put back"
    else:
        done = f"{sum(answer.put_back.values()):,} put back"
    failed = f", {answer.failed:,} could not be" if answer.failed else ""
    screen.print(f"{looked} looked at; {done}{failed}.")
    if answer.failed:
        screen.print("Why: the log groups of dispatch and outcomes, by the time of this command.")
