"""`reconcile`: its options, what it says first, and what it asks."""

import os
import time
from collections import Counter
from pathlib import Path
from typing import Annotated

import boto3
import typer
from msgspec import structs
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ops.reconcile.duration import seconds_of, written
from ops.reconcile.judge import State
from ops.reconcile.patience import patience_of
from ops.reconcile.reconciling import Reconciling
from ops.reconcile.report import Answer, by_state, depths, sentences
from ops.resend.deployed import Deployed
from ops.screen import AsJson, Stage, Yes, aws_faults, errors, screen, tell


def reconcile(
    stage: Stage = "dev",
    *,
    older_than: Annotated[
        str, typer.Option(help="How long a message may be on its way: as 90s, 15m, 2h, 1d.")
    ] = "15m",
    undated: Annotated[
        bool, typer.Option("--undated", help="Also what may be older than the ledger remembers.")
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

    The look is kept in a file until all is done, so a command that was stopped goes on where it was if it is
    run again within a day, with the same --older-than. A look that is over is used once more for --older-than
    and 10 minutes. It reads both tables as a whole.

    Exit code 1: something was left that is not on its way, or may not be (a dead letter, what is gone or
    undated) or, of a dry run, would be put back. 2: it could not be done.

    Example: mailroom reconcile --stage prod --dry-run
    """
    with aws_faults(stage):
        seconds = seconds_of(older_than)
        deployed = Deployed.of(boto3.Session(), stage)
        patience = patience_of(deployed, seconds)
        working = Reconciling(deployed, patience, _folder(), undated=undated)
        working.look = working.look.renewed(deployed.clock(), seconds)
        with _bar(quiet=as_json) as progress:
            _look(working, progress, stage, quiet=as_json)
            found = _judge(working, progress)
        look = str(working.look.path) if dry_run else ""
        answer = Answer(stage, dry_run, seconds, working.look.seen, found, depths(deployed), {}, 0, look)
        if not as_json:
            for sentence in sentences(answer):
                screen.print(sentence, soft_wrap=True)
        if not dry_run:
            if answer.stuck and not yes:
                typer.confirm(f"Put {answer.stuck:,} messages of {stage} back?", abort=True, err=True)
            with _bar(quiet=as_json) as progress:
                answer = _put_back(working, answer, progress)
            working.look.close()
    _say(answer, as_json=as_json)
    raise typer.Exit(1 if answer.left else 0)


def _folder() -> Path:
    """Where a look is kept, by the XDG Base Directory Specification."""
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "mailroom"


def _look(working: Reconciling, progress: Progress, stage: str, *, quiet: bool) -> None:
    seen = sum(working.look.seen.values())
    task = progress.add_task(f"looking through {stage}", total=max(working.items, seen), completed=seen)
    for count in working.looked():
        progress.advance(task, count)
    progress.update(task, total=sum(working.look.seen.values()))
    wait = working.wait()
    if not wait:
        return
    if not quiet:
        count = working.look.found["mailbox"]
        errors.print(
            f"{count:,} of the mailbox are unknown to the ledger so far; looking again in {written(wait)}. "
            "It may be stopped: run again, it goes on.",
            soft_wrap=True,
        )
    task = progress.add_task("waiting", total=round(wait))
    while (left := working.wait()) > 0:
        progress.update(task, completed=round(wait - left))
        time.sleep(min(1.0, left))


def _judge(working: Reconciling, progress: Progress) -> dict[State, dict[str, int]]:
    task = progress.add_task("looking again", total=sum(working.look.found.values()))
    counts: Counter[tuple[State, str]] = Counter()
    for step in working.judged():
        counts += step
        progress.advance(task, step.total())
    return by_state(counts)


def _put_back(working: Reconciling, answer: Answer, progress: Progress) -> Answer:
    if not answer.stuck:
        return answer
    task = progress.add_task("putting back", total=answer.stuck)
    counts: Counter[str] = Counter()
    failed = 0
    for step, left in working.put_back():
        counts += step
        failed += left
        progress.advance(task, step.total() + left)
    return structs.replace(answer, put_back=dict(sorted(counts.items())), failed=failed)


def _bar(*, quiet: bool) -> Progress:
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    return Progress(*columns, console=errors, disable=quiet, transient=True)


def _say(answer: Answer, *, as_json: bool) -> None:
    if as_json:
        tell(answer)
        return
    looked = " and ".join(f"{count:,} of the {table}" for table, count in answer.looked_at.items())
    if answer.dry_run:
        done = f"{answer.stuck:,} would be put back"
    else:
        done = f"{sum(answer.put_back.values()):,} put back"
    failed = f", {answer.failed:,} could not be" if answer.failed else ""
    screen.print(f"{looked} looked at; {done}{failed}.")
    if answer.failed:
        screen.print("Why: the log groups of dispatch and outcomes, by the time of this command.")
