"""`dead-letters`: what lies there, why, and how it is put back on its way."""

from collections import Counter
from itertools import islice
from typing import Annotated

import boto3
import typer

from mailroom.clock import iso
from ops.dead_letters import tables
from ops.dead_letters.answers import LettersShown, Listed, QueueOfLetters, Shown, shown
from ops.dead_letters.look import Looking
from ops.dead_letters.queues import DeadQueue, DeadQueues
from ops.dead_letters.redrive_command import redrive
from ops.progress import bar
from ops.screen import AsJson, Stage, aws_faults, screen, tell

app = typer.Typer(no_args_is_help=True, help="What queues gave up on: see it, see why, put it back.")
app.command()(redrive)

Queue = Annotated[str | None, typer.Option(help="That queue's alone, such as mail or fax.")]


@app.command("list")
def list_(
    stage: Stage = "dev",
    queue: Queue = None,
    look: Annotated[int, typer.Option(min=0, help="Letters of each queue that are looked at.")] = 100,
    *,
    fail_if_any: Annotated[bool, typer.Option("--fail-if-any", help="Exit code 1 if there are any.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print how many dead letters each queue has, since when, and of what causes.

    Looks at the first ones of each without taking any; causes are what the ledger says now. Exit code 0, and
    with --fail-if-any 1 where there are letters.

    Example: mailroom dead-letters list --stage prod
    """
    with aws_faults(stage):
        queues, looking = DeadQueues(boto3.Session(), stage), Looking(boto3.Session(), stage)
        with bar("looking", quiet=as_json) as advance:
            chosen = queues.named(queue)
            found = []
            for at, each in enumerate(chosen, 1):
                found.append(_of(queues, looking, each, look))
                advance(at, len(chosen))
    total = sum(each.letters for each in found)
    if as_json:
        tell(Listed(stage, total, found))
    else:
        screen.print(tables.queues(found))
        screen.print(f"{total} dead letters in {stage}.")
    raise typer.Exit(1 if fail_if_any and total else 0)


def _of(queues: DeadQueues, looking: Looking, queue: DeadQueue, look: int) -> QueueOfLetters:
    counts = queues.counts(queue)
    if not counts.visible or not look:
        return QueueOfLetters(queue.queue, counts.all, counts.hidden, complete=not counts.all)
    with looking.through(queue) as letters:
        seen = list(islice(letters, look))
        complete = len(seen) == counts.all if len(seen) == look else letters.complete()
    causes = Counter(each.cause.code for each in seen)
    oldest = min((each.letter.sent_at for each in seen), default=None)
    return QueueOfLetters(
        queue.queue,
        counts.all,
        counts.hidden,
        len(seen),
        None if oldest is None else iso(oldest / 1000),
        dict(causes.most_common()),
        complete,
    )


@app.command()
def show(
    which: Annotated[
        str | None, typer.Argument(help="A message's id, or SQS's id of a letter; else the first ones.")
    ] = None,
    stage: Stage = "dev",
    queue: Queue = None,
    limit: Annotated[int, typer.Option(min=1, help="Letters at most.")] = 10,
    *,
    body: Annotated[bool, typer.Option("--body", help="Its body as well: personal data.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print dead letters: of what message, why they are dead, and what the ledger says.

    None is taken out. Of a FIFO queue the first ten of each group can be seen, no more. Bodies hold personal
    data, addresses and content, and are printed with --body alone. Exit code 1: there is no such letter.

    Example: mailroom dead-letters show order-42 --stage prod
    """
    with aws_faults(stage):
        answer = _find(DeadQueues(boto3.Session(), stage).named(queue), stage, which, limit, body)
    if as_json:
        tell(answer)
    else:
        for each in answer.letters:
            tables.letter(each)
        if not answer.letters:
            screen.print(f"No such letter among the {answer.looked_at} of {stage}.")
        if answer.incomplete:
            screen.print(tables.incomplete(answer.incomplete), soft_wrap=True)
    raise typer.Exit(0 if answer.letters else 1)


def _find(queues: list[DeadQueue], stage: str, which: str | None, limit: int, body: bool) -> LettersShown:
    """The letters that are asked for."""
    looking = Looking(boto3.Session(), stage)
    found: list[Shown] = []
    incomplete: list[str] = []
    looked_at = 0
    for queue in queues:
        with looking.through(queue) as letters:
            for each in letters:
                if len(found) == limit:
                    break
                looked_at += 1
                key = each.subject.key
                if which in (None, each.letter.message_id, key and key.id):
                    found.append(shown(each, queue.queue, body=body))
            if len(found) < limit and not letters.complete():
                incomplete.append(queue.queue)
    return LettersShown(stage, looked_at, found, incomplete)
