"""`reconcile`: its options, what it says first, and what it asks."""

import sys
import time
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Annotated

import typer

from ops.options import AsJson, Stage, Yes
from ops.reconcile.judge import State
from ops.reconcile.reconciler import Candidates, Reconciled, Reconciler, stale_after_of
from ops.requeue.selection import selected
from ops.requeue.stage import DeployedStage
from ops.screen import Refused, aws_faults, bar, confirm, errors, print_answer, print_line, screen, status
from ops.stage import aws_session
from ops.times import seconds_of, written

_SENTENCES: dict[State, str] = {
    "missing": "are in the mailbox, but the ledger does not know them",
    "overdue": "were begun, and have not changed for too long",
    "dead_letters": "are dead letters, and stay so: run mailroom dead-letters list",
    "gone": "were begun, but their item is gone from the mailbox. They may have been sent, or may still be "
    "queued: ask the provider, then end them with mailroom settle. If you put one again under a new id, it "
    "may be sent twice",
    "undated": "are unknown to the ledger, which may have forgotten them, so they may have been sent. If you "
    "know that messages were never sent, requeue them with mailroom reconcile ID..., or all with "
    "--include-forgotten",
}
_NAMED: dict[str, str] = {
    "moving": "on its way, or over; mailroom status says which",
    "dead_letters": "in a dead-letter queue",
    "unknown": "not in the mailbox and not in the ledger; check the id, --channel and --stage",
}
"""Words for a message that was named, where its state by itself says too little."""
_SHOWN = 50


def reconcile(
    ids: Annotated[
        list[str] | None,
        typer.Argument(
            help="Requeue only these messages, which you know were never sent; - reads ids, or another "
            "command's --json, from standard input."
        ),
    ] = None,
    stage: Stage = "dev",
    *,
    channel: Annotated[str | None, typer.Option(help="With ids: only messages of this channel.")] = None,
    older_than: Annotated[
        str, typer.Option(help="Call a message stuck after this time: 90s, 15m, 2h, 1d.")
    ] = "15m",
    include_forgotten: Annotated[
        bool,
        typer.Option(
            "--include-forgotten", help="Also requeue all messages that the ledger may have forgotten."
        ),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what there is; requeue nothing.")] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Requeue orphans: messages that no queue, schedule or worker holds any more.

    An orphan is an item of the mailbox that is missing from the ledger in two checks, --older-than apart, or
    an item of the ledger whose next step is overdue by that time. The function or queue that would have had
    the message gets it again. A message that still waits in a queue is then queued twice, and sent once. Dead
    letters stay in their queue. A message that is marked as a dead letter is requeued once its dead letter is
    gone, because its retention ended or the queue was purged.

    With ids, the command looks only at these messages, and one look is enough. It also requeues messages that
    the ledger may have forgotten: by naming a message you confirm that it was never sent.

    Without ids, the command reads both tables as a whole. A run that is stopped leaves nothing behind; the
    next run starts again from the beginning. Several runs at once may queue a message twice; it is sent once.

    Exit code 1: something is left (a dead letter, a gone or undated message, an unknown id), could not be
    requeued or, after a dry run, would be requeued. 2: the command could not do its work.

    Example: mailroom reconcile --stage prod --dry-run
    """
    with aws_faults(stage):
        if channel is not None and not ids:
            raise Refused("--channel needs ids: give ids too, or leave --channel out.")
        seconds = seconds_of(older_than)
        refs = selected(ids, channel, sys.stdin, stage) if ids else None
        deployed = DeployedStage.of(aws_session(), stage)
        reconciler = Reconciler(
            deployed,
            stale_after_of(deployed, seconds),
            confirmed=include_forgotten or refs is not None,
        )
        candidates = _scan(reconciler, stage, quiet=as_json) if refs is None else reconciler.named(refs)
        with status("looking at what was found", quiet=as_json):
            answer = reconciler.evaluate(candidates, dry_run=dry_run)
        if not as_json:
            for sentence in _sentences(answer):
                print_line(sentence)
        if answer.stuck and not dry_run:
            confirm(_question(answer), yes=yes, piped="-" in (ids or ()))
            with status("requeuing", quiet=as_json):
                answer = reconciler.requeue(candidates, answer)
    print_answer(answer, partial(_show, named=refs is not None), as_json=as_json)
    raise typer.Exit(1 if answer.incomplete else 0)


def _scan(reconciler: Reconciler, stage: str, *, quiet: bool) -> Candidates:
    """What both tables have, after the wait for the second look."""
    with bar(f"reading the tables of {stage}", quiet=quiet) as progress:
        candidates = reconciler.scan(progress)
    seconds = reconciler.second_look_in(candidates)
    if seconds:
        if not quiet:
            said = f"The ledger does not know some items of the mailbox; looking again in {written(seconds)}."
            errors.print(said, soft_wrap=True)
        with status("waiting", quiet=quiet):
            time.sleep(seconds)
    return candidates


def _question(answer: Reconciled) -> str:
    asked = f"Requeue {answer.stuck:,} message{'' if answer.stuck == 1 else 's'} of {answer.stage}?"
    if not answer.confirmed_count:
        return asked
    return (
        f"{asked} The ledger may have forgotten {answer.confirmed_count:,} of them. Confirm that they were "
        "never sent. A message that was sent would be sent again."
    )


def _sentences(answer: Reconciled) -> Iterator[str]:
    for each in answer.messages[:_SHOWN]:
        channel = f" ({each.event_type})" if each.event_type else ""
        yield f"{each.id}{channel}: {_NAMED.get(each.state, each.state)}"
    if len(answer.messages) > _SHOWN:
        yield f"and {len(answer.messages) - _SHOWN:,} more; --json has all."
    for state, said in _SENTENCES.items():
        if counts := answer.found.get(state):
            yield f"{sum(counts.values()):,} ({_by_channel(counts)}) {said}."
    if stuck := _queued(answer, "missing", "overdue"):
        yield (
            f"Queues hold messages: {_by_channel(stuck)}. A message that only waits in its queue would be "
            "queued twice, and sent once."
        )
    if gone := _queued(answer, "gone"):
        yield (
            f"Queues hold messages: {_by_channel(gone)}. Messages that are gone from the mailbox may be "
            "among them."
        )


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
        screen.print("To see why, read the log groups of dispatch and outcomes at the time of this command.")
