"""What the commands print for people."""

from rich import box
from rich.table import Table
from rich.text import Text

from ops.dead_letters.answers import QueueOfLetters, Redriven, Shown
from ops.dead_letters.redrive import Plan
from ops.screen import lines, plain, screen

_HOW = {
    "move_task": "SQS moves them by itself",
    "one_by_one": "this command moves them, one after another",
}


def queues(found: list[QueueOfLetters]) -> Table:
    """A row a queue."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("queue", no_wrap=True)
    table.add_column("letters", justify="right")
    table.add_column("hidden", justify="right")
    table.add_column("oldest", no_wrap=True)
    table.add_column("causes", overflow="fold", ratio=1)
    for each in found:
        causes = ", ".join(f"{count} {code}" for code, count in each.causes.items())
        if each.causes and each.looked_at < each.letters:
            causes += f" (of the {each.looked_at} looked at)"
        oldest = each.oldest[:16].replace("T", " ") if each.oldest else ""
        table.add_row(each.queue, str(each.letters), str(each.hidden), oldest, plain(causes))
    return table


def incomplete(queues: list[str]) -> Text:
    """What to say of queues of which not all was seen."""
    return plain(
        f"Not all that lies in {', '.join(queues)} could be looked at: there are too many letters, or of a "
        "FIFO queue more than ten in a line. What was not found may be there: redrive some, then look again."
    )


def letter(found: Shown) -> None:
    """One letter, a line for each thing that is known of it."""
    screen.print(plain(f"{found.queue}  {found.message_id}"), style="bold", soft_wrap=True)
    about = f"{found.id}  {found.event_type}" if found.id is not None else found.kind
    said = [
        ("about", about),
        ("cause", f"{found.cause.code}: {found.cause.message}"),
        ("ledger", found.status or "no item"),
        ("died after", f"{found.receives} receives, this look among them; sent {found.sent_at}"),
    ]
    if found.last_error:
        said.append(("last error", f"{found.last_error.get('code')}: {found.last_error.get('message')}"))
    if found.first_seen:
        said.append(("told of", found.first_seen))
    for name, text in said:
        screen.print(plain(f"  {name:<11}{text}"), soft_wrap=True)
    if found.body is not None:
        screen.print(lines(found.body), soft_wrap=True)


def plan(planned: Plan) -> None:
    """What a redrive will do, before it does it."""
    what = f"{len(planned.only)} chosen" if planned.only else f"about {planned.found}"
    rate = f", {planned.rate} a second at most" if planned.rate else ""
    screen.print(
        plain(
            f"{what} of the {planned.found} dead letters of {planned.queue.queue} ({planned.stage}) go back "
            f"into that queue; {_HOW[planned.way]}{rate}."
            if planned.only
            else f"{what} dead letters of {planned.queue.queue} ({planned.stage}) go back into that queue; "
            f"{_HOW[planned.way]}{rate}."
        ),
        soft_wrap=True,
    )
    screen.print(
        "What was sent already is dropped by the ledger, and what has expired is not sent.", soft_wrap=True
    )
    if planned.way == "one_by_one":
        screen.print(
            "Should this process die between sending and deleting, that letter is in both queues: the ledger "
            "drops the copy, a callback comes twice under one webhook-id.",
            soft_wrap=True,
        )
    if planned.running is not None:
        screen.print(
            f"A task is at it already: {planned.running.moved} moved; this command follows it.",
            soft_wrap=True,
        )


def redriven(answer: Redriven) -> None:
    """How it ended."""
    state = "dry run" if answer.dry_run else answer.state
    screen.print(
        plain(
            f"{answer.queue}: {answer.moved} moved, {answer.left} left ({state})."
            + (f" {answer.reason}" if answer.reason else "")
        ),
        soft_wrap=True,
    )
    if answer.left and answer.state == "done":
        screen.print(
            "Those were hidden, because somebody looks at them, or are not there: run it again.",
            soft_wrap=True,
        )
