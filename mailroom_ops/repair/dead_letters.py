"""`dead-letters`: what lies there, and why."""

from collections import Counter
from itertools import islice
from typing import Annotated, Any

import typer
from msgspec import Struct

from mailroom.clock import iso
from mailroom.dead_letters.cause import Cause, ExplainedDeadLetter
from mailroom_ops.repair.dead_letter_queues import DeadQueue, DeadQueues
from mailroom_ops.shared.deployed_stage import aws_session, depth
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

app = typer.Typer(no_args_is_help=True, help="List dead letters, and show why they are dead.")

LOOKED_AT = 100
"""Dead letters of a queue that `list` reads."""
Queue = Annotated[str | None, typer.Option(help="Look only at this queue, such as mail or fax.")]


class DeadLetterCounts(Struct, frozen=True):
    """`letters` lie in the dead-letter queue of `queue`. Somebody has received `hidden` of them. Both numbers
    are approximate. `oldest` and `causes` describe the `looked_at` letters that were read."""

    queue: str
    letters: int
    hidden: int
    looked_at: int = 0
    oldest: str | None = None
    causes: dict[str, int] = {}


class DeadLettersListed(Struct, frozen=True):
    """Answer of `dead-letters list`."""

    stage: str
    letters: int
    queues: list[DeadLetterCounts]


class ShownDeadLetter(Struct, frozen=True):
    """A dead letter. `message_id` is the id in SQS; `id` and `event_type` are its message's, where it is
    about one.

    `status` and `last_error` are the ledger's. `body`: only where --body asks for it.
    """

    queue: str
    message_id: str
    kind: str
    cause: Cause
    receives: int
    sent_at: str
    id: str | None = None
    event_type: str | None = None
    status: str | None = None
    last_error: dict[str, Any] | None = None
    body: str | None = None


class DeadLettersShown(Struct, frozen=True):
    """Answer of `dead-letters show`. `looked_at` dead letters were read to find these. The queues in
    `incomplete` could not be read to their end."""

    stage: str
    looked_at: int
    letters: list[ShownDeadLetter]
    incomplete: list[str] = []


@app.command("list")
def list_(
    stage: Stage = "dev",
    queue: Queue = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Print how many dead letters each queue has, since when, and why.

    The command reads the first 100 dead letters of each queue, and removes nothing. The causes are what the
    ledger says now. Exit code 0, however many there are.

    Example: mailroom dead-letters list --stage prod
    """
    with aws_faults(stage):
        queues = DeadQueues(aws_session(), stage)
        with bar("looking", quiet=as_json) as advance:
            chosen = queues.named(queue)
            found = []
            for at, each in enumerate(chosen, 1):
                found.append(count_letters(queues, each, LOOKED_AT))
                advance(at, len(chosen))
    answer = DeadLettersListed(stage, sum(each.letters for each in found), found)
    print_answer(answer, _print_counts, as_json=as_json)


def count_letters(queues: DeadQueues, queue: DeadQueue, most: int) -> DeadLetterCounts:
    """How many lie in a queue, and what `most` of them at most say. Takes none out."""
    there = depth(queues.client, queue.url)
    total, hidden = there.all, there.in_flight  # somebody has received these, and not put them back
    if not there.visible or not most:
        return DeadLetterCounts(queue.queue, total, hidden)
    with queues.scan(queue) as dead_letters:
        seen = list(islice(dead_letters, most))
    causes = Counter(each.cause.code for each in seen)
    oldest = min((each.dead_letter.sent_at for each in seen), default=None)
    since = None if oldest is None else iso(oldest / 1000)
    return DeadLetterCounts(queue.queue, total, hidden, len(seen), since, dict(causes.most_common()))


def _print_counts(answer: DeadLettersListed) -> None:
    counts = map(right, ("dead letters", "hidden"))
    columns = (whole("queue"), *counts, whole("oldest"), fold("causes", ratio=1))
    screen.print(table_of(*columns, rows=map(_cells, answer.queues)))
    screen.print(f"{answer.letters} dead letters in {answer.stage}.")


def _cells(counts: DeadLetterCounts) -> tuple[str, ...]:
    causes = ", ".join(f"{count} {code}" for code, count in counts.causes.items())
    if counts.causes and counts.looked_at < counts.letters:
        causes += f" (of the {counts.looked_at} looked at)"
    oldest = counts.oldest[:16].replace("T", " ") if counts.oldest else ""
    return counts.queue, str(counts.letters), str(counts.hidden), oldest, causes


@app.command()
def show(
    which: Annotated[
        str | None, typer.Argument(help="A message's id, or SQS's id of a dead letter; default: the first.")
    ] = None,
    stage: Stage = "dev",
    queue: Queue = None,
    limit: Annotated[int, typer.Option(min=1, help="Show at most this many dead letters.")] = 10,
    *,
    body: Annotated[bool, typer.Option("--body", help="Print bodies too: they hold personal data.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print dead letters: their messages, why they are dead, and what the ledger says.

    The command removes nothing. A FIFO queue shows only the first ten dead letters of each group. Bodies hold
    addresses and content, so they are printed only with --body. Exit code 1: there is no such dead letter.

    Example: mailroom dead-letters show order-42 --stage prod
    """
    with aws_faults(stage):
        answer = find_letters(DeadQueues(aws_session(), stage), queue, stage, which, limit, body)
    print_answer(answer, _print_letters, as_json=as_json)
    raise typer.Exit(0 if answer.letters else 1)


def find_letters(
    queues: DeadQueues, name: str | None, stage: str, which: str | None, limit: int, body: bool
) -> DeadLettersShown:
    """The dead letters that are asked for."""
    found: list[ShownDeadLetter] = []
    incomplete: list[str] = []
    looked_at = 0
    for queue in queues.named(name):
        with queues.scan(queue) as dead_letters:
            for each in dead_letters:
                if len(found) == limit:
                    break
                looked_at += 1
                key = each.subject.key
                if which in (None, each.dead_letter.message_id, key and key.id):
                    found.append(_shown(each, queue.queue, body=body))
            if len(found) < limit and not dead_letters.complete():
                incomplete.append(queue.queue)
    return DeadLettersShown(stage, looked_at, found, incomplete)


def _shown(seen: ExplainedDeadLetter, queue: str, *, body: bool) -> ShownDeadLetter:
    key, item = seen.subject.key, seen.item
    error = item.get("trouble") or item.get("error")
    return ShownDeadLetter(
        queue,
        seen.dead_letter.message_id,
        seen.subject.kind,
        seen.cause,
        seen.dead_letter.receives,
        iso(seen.dead_letter.sent_at / 1000),
        None if key is None else key.id,
        None if key is None else key.event_type,
        item.get("status"),
        error if isinstance(error, dict) else None,
        seen.dead_letter.body if body else None,
    )


def _print_letters(answer: DeadLettersShown) -> None:
    for each in answer.letters:
        _print(each)
    if not answer.letters:
        screen.print(f"No such dead letter among the {answer.looked_at} of {answer.stage}.")
    if answer.incomplete:
        print_line(
            f"Some dead letters in {', '.join(answer.incomplete)} could not be read: there are too many, or "
            "a FIFO queue has more than ten in a group. The one that you look for may be there: put some "
            "back, then look again."
        )


def _print(found: ShownDeadLetter) -> None:
    print_line(f"{found.queue}  {found.message_id}", "bold")
    about = f"{found.id}  {found.event_type}" if found.id is not None else found.kind
    said = [
        ("about", about),
        ("cause", f"{found.cause.code}: {found.cause.message}"),
        ("ledger", found.status or "no item"),
        ("died after", f"{found.receives} receives, this look included; queued {found.sent_at}"),
    ]
    if found.last_error:
        said.append(("last error", f"{found.last_error.get('code')}: {found.last_error.get('message')}"))
    for name, text in said:
        print_line(f"  {name:<11}{text}")
    if found.body is not None:
        screen.print(lines(found.body), soft_wrap=True)
