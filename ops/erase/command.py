"""`erase`: a person, from every table, bucket and dead-letter queue of a stage."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import boto3
import typer
from rich import box
from rich.progress import Progress, SpinnerColumn, TextColumn
from rich.table import Table

from ops.erase.answer import Erased
from ops.erase.erasing import Erasing, Look, Step
from ops.erase.find import Read
from ops.erase.person import Person
from ops.erase.stage_facts import StageFacts
from ops.screen import AsJson, Stage, Yes, aws_faults, errors, plain, screen, tell

_MOST_NAMED = 20
_CHOICES = (
    "Its {count} opt-outs and entries of the suppression list go as well. After that nothing keeps a "
    "campaign or an application that still has it from writing to it again: take it out of those first, or "
    "leave the choices by --keep-choices."
)


def erase(
    recipient: Annotated[
        str, typer.Argument(help="An address, a number, a device token or an endpoint's ARN.")
    ],
    stage: Stage = "dev",
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what there is; erase nothing.")] = False,
    keep_choices: Annotated[
        bool, typer.Option("--keep-choices", help="Leave opt-outs and the suppression list, SES's too.")
    ] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Erase a recipient from every table, bucket and dead-letter queue of a stage, in all spellings.

    Messages to it alone go, those that wait are cancelled; of messages to several, it alone goes. The ledger
    keeps the emptied item of each until its time is over, for that keeps late copies from being sent. What a
    worker holds at this moment is left and named. It can be run again at any time. Exit code 1: something is
    left; run it again when that is over. Logs and backups: docs/erasing.md.

    Example: mailroom erase ada@example.com --stage prod
    """
    with aws_faults(stage):
        facts = StageFacts.of(boto3.Session(), stage)
        person = Person(recipient, facts.default_region)
        with _steps(quiet=as_json) as step:
            erasing = Erasing(boto3.Session(), facts, person, step, keep_choices=keep_choices)
            first = erasing.look()
        if not as_json:
            _show_first(first)
        if dry_run:
            answer = erasing.answer(first, None)
        else:
            if not yes:
                typer.confirm(_question(first, stage, keep_choices), abort=True, err=True)
            with _steps(quiet=as_json) as step:
                erasing.step = step
                cancelled, ses = erasing.erase(first)
                answer = erasing.answer(first, erasing.look(), cancelled, ses)
    if as_json:
        tell(answer)
    elif not dry_run:
        _show(answer)
    raise typer.Exit(0 if dry_run or _is_good(answer) else 1)


@contextmanager
def _steps(*, quiet: bool) -> Iterator[Step]:
    """Shows each step on stderr, with what it has read so far."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TextColumn("{task.completed:.0f} read"))
    with Progress(*columns, console=errors, disable=quiet, transient=True) as progress:

        @contextmanager
        def step(name: str) -> Iterator[Read]:
            task = progress.add_task(name, total=None)
            yield lambda count: progress.advance(task, count)
            progress.remove_task(task)

        yield step


def _question(first: Look, stage: str, keep_choices: bool) -> str:
    messages = first.messages
    alone, others = len(messages.keys("whole")), len(messages.keys("part")) + len(messages.keys("mention"))
    said = f"Erase it from {stage}: {alone} messages to it alone, and it from {others} to others"
    return f"{said}; opt-outs and suppressions stay?" if keep_choices else f"{said}?"


def _is_good(answer: Erased) -> bool:
    return not (answer.left or answer.remains or answer.ids)


def _show_first(first: Look) -> None:
    table = Table("place", "found", box=box.SIMPLE_HEAD, pad_edge=False)
    for each in first.places.values():
        table.add_row(each.place, str(each.found))
    screen.print(table)
    choices = sum(
        first.places[name].found - first.places[name].kept for name in ("preferences", "suppressions")
    )
    if choices:
        screen.print(_CHOICES.format(count=choices), soft_wrap=True)


def _show(answer: Erased) -> None:
    table = Table("place", "found", "erased", "kept", "left", box=box.SIMPLE_HEAD, pad_edge=False)
    for each in answer.places:
        table.add_row(each.place, *(str(count) for count in (each.found, each.erased, each.kept, each.left)))
    screen.print(table)
    if answer.cancelled:
        screen.print(f"{answer.cancelled} messages that the ledger did not know to be over were cancelled.")
    for left in answer.remains[:_MOST_NAMED]:
        screen.print(plain(f"{left.place}: {left.what} {left.why}."), soft_wrap=True)
    if len(answer.remains) > _MOST_NAMED:
        screen.print(f"and {len(answer.remains) - _MOST_NAMED} more; --json names all of them.")
    if answer.ids:
        screen.print(
            plain(
                f"These ids hold the recipient; the ledger keeps them until {answer.ids_until or 'deleted'}:"
            )
        )
        for id_ in answer.ids[:_MOST_NAMED]:
            screen.print(plain(f"  {id_}"), soft_wrap=True)
    screen.print(f"{answer.left} left in {answer.stage}; SES's own list: {answer.ses.replace('_', ' ')}.")
