"""`reconcile`: its options, what it says first, and what it asks."""

import sys
import time
from collections.abc import Iterator, Mapping
from typing import Annotated

import boto3
import typer

from ops.options import AsJson, Stage, Yes
from ops.reconcile.answer import Reconciled
from ops.reconcile.reconciler import Reconciler
from ops.reconcile.states import StaleAfter, State
from ops.requeue.selection import selected
from ops.requeue.stage import DeployedStage
from ops.screen import Refused, aws_faults, bar, errors, print_json, print_line, screen
from ops.times import seconds_of, written

_SENTENCES: dict[State, str] = {
    "missing": "are in the mailbox, and unknown to the ledger",
    "overdue": "were begun, and should have moved on long ago",
    "dead_letters": "lie in a dead-letter queue, and are left there: see mailroom dead-letters",
    "gone": "were begun, and their item is gone from the mailbox; they may have been sent, or still be "
    "queued: ask the provider first, and end them by mailroom settle; to put one there again under a new id "
    "may send it twice",
    "undated": "are unknown to the ledger, and may be older than it remembers, so they may have been sent: "
    "mailroom reconcile ID... requeues those that you know were never sent, --undated all of them",
}
_NAMED: dict[str, str] = {
    "moving": "on its way, or over; mailroom status says which",
    "dead_letters": "in a dead-letter queue",
    "unknown": "neither the mailbox nor the ledger has it; check the id, --channel and --stage",
}
"""Of a message that was named, where its state by itself says too little."""
_SHOWN = 50


def reconcile(
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            help="Only these messages, which you know were never sent; - reads ids, or another command's "
            "--json."
        ),
    ] = None,
    stage: Stage = "dev",
    *,
    channel: Annotated[str | None, typer.Option(help="With ids: only that channel's.")] = None,
    older_than: Annotated[
        str, typer.Option(help="How long a message may be on its way: as 90s, 15m, 2h, 1d.")
    ] = "15m",
    undated: Annotated[
        bool, typer.Option("--undated", help="Also all that may be older than the ledger remembers.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what there is; requeue nothing.")] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Requeue orphans: messages that no queue, schedule or worker holds any more.

    These are items of the mailbox that the ledger does not know at two looks, as far apart as --older-than
    says, and items of the ledger whose next step is overdue by that. The function or queue that would have
    had a message gets it again; a message that still waits in a queue is queued twice, and sent once. Dead
    letters stay in their queue. A message that is marked as one is requeued once that dead letter is gone:
    its retention ended, or the queue was purged.

    With ids no other message is looked at, and one look is enough. Messages that the ledger may have
    forgotten are requeued as well: by naming a message you vouch that it was never sent.

    It reads both tables as a whole. A run that is stopped leaves nothing behind; the next one starts again
    from the beginning. Several may run at once: they queue a message twice, and it is sent once.

    Exit code 1: something was left that is not on its way, or may not be (a dead letter, what is gone,
    undated or, of ids, not there) or, of a dry run, would be requeued. 2: it could not be done.

    Example: mailroom reconcile --stage prod --dry-run
    """
    with aws_faults(stage):
        if channel is not None and not ids:
            raise Refused("--channel says which message an id means: give ids as well, or leave it out.")
        seconds = seconds_of(older_than)
        refs = selected(ids, channel, sys.stdin, stage) if ids else None
        deployed = DeployedStage.of(boto3.Session(), stage)
        stale_after = StaleAfter.of(deployed, seconds)
        reconciler = Reconciler(deployed, stale_after, vouched=undated or refs is not None)
        if refs is None:
            with bar(f"reading the tables of {stage}", quiet=as_json) as progress:
                candidates = reconciler.scan(progress)
            _wait(reconciler.second_look_in(candidates), quiet=as_json)
        else:
            candidates = reconciler.named(refs)
        with errors.status("looking at what was found"):
            answer = reconciler.evaluate(candidates, dry_run=dry_run)
        if not as_json:
            for sentence in _sentences(answer):
                print_line(sentence)
        if answer.stuck and not dry_run:
            if not yes:
                _confirm(answer, piped="-" in (ids or ()))
            with errors.status("requeuing"):
                answer = reconciler.requeue(candidates, answer)
    if as_json:
        print_json(answer)
    else:
        _show(answer, named=refs is not None)
    raise typer.Exit(1 if answer.incomplete else 0)


def _wait(seconds: float, *, quiet: bool) -> None:
    """Wait for the second look."""
    if not seconds:
        return
    if not quiet:
        said = f"The ledger does not know some items of the mailbox; looking again in {written(seconds)}."
        errors.print(said, soft_wrap=True)
    with errors.status("waiting"):
        time.sleep(seconds)


def _confirm(answer: Reconciled, *, piped: bool) -> None:
    many = f"{answer.stuck:,} message{'' if answer.stuck == 1 else 's'}"
    risk = ""
    if answer.vouched:
        risk = (
            f" {answer.vouched:,} may be older than the ledger remembers: you vouch that none was ever sent; "
            "one that was is sent again."
        )
    if piped:
        raise Refused(f"{many} would be requeued.{risk} No question can be asked: use --yes.")
    typer.confirm(f"Requeue {many} of {answer.stage}?{risk}", abort=True, err=True)


def _sentences(answer: Reconciled) -> Iterator[str]:
    """What was found, a line each."""
    for each in answer.messages[:_SHOWN]:
        channel = f" ({each.event_type})" if each.event_type else ""
        yield f"{each.id}{channel}: {_NAMED.get(each.state, each.state)}"
    if len(answer.messages) > _SHOWN:
        yield f"and {len(answer.messages) - _SHOWN:,} more; --json has all."
    for state, said in _SENTENCES.items():
        if counts := answer.found.get(state):
            yield f"{sum(counts.values()):,} {said} ({_by_channel(counts)})."
    if stuck := _queued(answer, "missing", "overdue"):
        yield (
            f"Queues hold messages: {_by_channel(stuck)}. A message that only waits there for its turn would "
            "be queued twice, and sent once."
        )
    if gone := _queued(answer, "gone"):
        yield f"Queues hold messages: {_by_channel(gone)}. What is gone from the mailbox may be among them."


def _queued(answer: Reconciled, *states: State) -> dict[str, int]:
    """What the queues hold, of the channels that have messages in these states."""
    channels = {channel for state in states for channel in answer.found.get(state, {})}
    return {name: count for name, count in answer.queues.items() if count and name in channels}


def _by_channel(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{channel} {count:,}" for channel, count in counts.items())


def _show(answer: Reconciled, *, named: bool) -> None:
    looked = " and ".join(f"{count:,} of the {table}" for table, count in answer.looked_at.items())
    if named:
        looked = f"{len(answer.messages):,} named"
    if answer.dry_run:
        done = f"{answer.stuck:,} would be requeued"
    else:
        done = f"{sum(answer.put_back.values()):,} requeued"
    failed = f", {answer.failed:,} could not be" if answer.failed else ""
    screen.print(f"{looked} looked at; {done}{failed}.")
    if answer.failed:
        screen.print("Why: the log groups of dispatch and outcomes, by the time of this command.")
