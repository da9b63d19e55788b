"""The command `messages dead-letters`: counts the dead letters of a stage, and shows them with their
causes."""

import time
from functools import partial
from typing import Annotated

import typer
from msgspec import Struct

from mailroom.errors import quantity
from mailroom_ops.messages import filter_options, filters
from mailroom_ops.repair.dead_letter_queues import ALL, DeadQueues
from mailroom_ops.repair.shown_letters import (
    DeadLetterCounts,
    DeadLettersShown,
    ShownDeadLetter,
    count_letters,
    find_letters,
)
from mailroom_ops.shared.deployed_stage import aws_session
from mailroom_ops.shared.options import AsJson, Stage
from mailroom_ops.shared.screen import (
    aws_faults,
    bar,
    fold,
    lines,
    print_answer,
    print_line,
    right,
    screen,
    table_of,
    whole,
)

LOOKED_AT, SHOWN = 100, 10
"""Default numbers of dead letters that are read of each queue for the counts, and that are shown."""


class DeadLettersListed(Struct, frozen=True):
    """Output of the command `messages dead-letters` without a dead letter or queue."""

    stage: str
    letters: int
    queues: list[DeadLetterCounts]


def dead_letters(
    which: Annotated[str | None, typer.Argument(help="A message's id, or a dead letter's SQS id.")] = None,
    stage: Stage = "dev",
    queue: Annotated[
        str | None,
        typer.Option(help="Show the dead letters of this queue, such as mail; all: of all."),
    ] = None,
    since: filter_options.Since = "",
    until: filter_options.Until = "",
    limit: Annotated[
        int | None,
        typer.Option(
            min=1, help="Read at most this many of each queue (default: 100), or show at most this many (10)."
        ),
    ] = None,
    *,
    body: Annotated[bool, typer.Option("--body", help="Print bodies too, with personal data.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show dead letters, and why they are dead.

    Without WHICH and --queue: the number of dead letters of each queue, the time of the oldest, and the
    causes. With them: each dead letter, its message, its cause, and the message's status in the ledger.
    Bodies contain addresses and content, so they are printed only with --body.

    The command does not remove dead letters. From a FIFO queue it can read only the first ten of each message
    group. --since and --until are compared with the time when a message was queued (a fax: when it became a
    dead letter); they do not change the numbers of dead letters. Exit code 1: the dead letter in WHICH, or
    one of --queue, was not found. To put dead letters back: mailroom messages resend --dead-letters QUEUE.

    Example: mailroom messages dead-letters --stage prod

    Example: mailroom messages dead-letters order-42 --stage prod
    """
    with aws_faults(stage):
        period = filters.Period.of(since, until, time.time())
        queues = DeadQueues(aws_session(), stage)
        if which or queue or body:
            name = None if queue == ALL else queue
            letters = find_letters(queues, name, stage, which, limit or SHOWN, body, period)
            print_answer(letters, _print_letters, as_json=as_json)
            raise typer.Exit(0 if letters.letters else 1)
        with bar("reading", quiet=as_json) as advance:
            dead_queues = queues.named(None)
            all_counts = []
            for number, dead_queue in enumerate(dead_queues, 1):
                all_counts.append(count_letters(queues, dead_queue, limit or LOOKED_AT, period))
                advance(number, len(dead_queues))
    answer = DeadLettersListed(stage, sum(counts.letters for counts in all_counts), all_counts)
    print_answer(answer, partial(_print_counts, limit=limit or LOOKED_AT), as_json=as_json)


def _print_counts(answer: DeadLettersListed, limit: int) -> None:
    counts = map(right, ("dead letters", "hidden"))
    columns = (whole("queue"), *counts, whole("oldest"), fold("causes", ratio=1))
    screen.print(table_of(*columns, rows=map(_cells, answer.queues)))
    screen.print(f"{quantity(answer.letters, 'dead letter')} in {answer.stage}.")
    if any(limit == counts.looked_at < counts.letters for counts in answer.queues):
        screen.print(f"More: --limit {max(counts.letters for counts in answer.queues)}")


def _cells(counts: DeadLetterCounts) -> tuple[str, ...]:
    causes = ", ".join(f"{count} {code}" for code, count in counts.causes.items())
    if counts.causes and counts.looked_at < counts.letters:
        causes += f" (of the {counts.looked_at} looked at)"
    oldest = counts.oldest[:16].replace("T", " ") if counts.oldest else ""
    return counts.queue, str(counts.letters), str(counts.hidden), oldest, causes


def _print_letters(answer: DeadLettersShown) -> None:
    for letter in answer.letters:
        _print(letter)
    if answer.more:
        screen.print(f"More: --limit {10 * len(answer.letters)}")
    if not answer.letters:
        screen.print(f"No such dead letter among the {answer.looked_at} that were read in {answer.stage}.")
    if answer.incomplete:
        print_line(
            f"Some dead letters in {', '.join(answer.incomplete)} could not be read: there are too many, or "
            "a FIFO queue has more than ten in a group. Yours may be among them: move some back into their "
            "queue (mailroom messages resend), then run this again."
        )


def _print(letter: ShownDeadLetter) -> None:
    print_line(f"{letter.queue}  {letter.message_id}", "bold")
    subject = f"{letter.id}  {letter.event_type}" if letter.id is not None else letter.kind
    rows = [
        ("about", subject),
        ("cause", f"{letter.cause.code}: {letter.cause.message}"),
        ("ledger", letter.status or "no item"),
        (
            "died after",
            f"{quantity(letter.receives, 'receive')}, including this one; queued {letter.sent_at}",
        ),
    ]
    if letter.last_error:
        rows.append(("last error", f"{letter.last_error.get('code')}: {letter.last_error.get('message')}"))
    for name, text in rows:
        print_line(f"  {name:<11}{text}")
    if letter.body is not None:
        screen.print(lines(letter.body), soft_wrap=True)
