"""The command `repair`: reads its options, shows what it would repair, asks, and repairs."""

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Annotated

import typer
from msgspec import Struct, structs

from mailroom.clock import iso
from mailroom.errors import quantity
from mailroom.ledger.status_reader import of_ledger
from mailroom_ops.messages.status import show, view_of
from mailroom_ops.repair.dead_letter_queues import DeadQueues
from mailroom_ops.repair.failed_batches import FailedBatches, Replayed
from mailroom_ops.repair.judge import PATIENCE_SECONDS, State
from mailroom_ops.repair.redrive import Redrive, Redriven
from mailroom_ops.repair.repairs import Candidates, Repaired, Repairs, Word
from mailroom_ops.shared.deployed_stage import aws_session
from mailroom_ops.shared.options import AsJson, Stage, Yes
from mailroom_ops.shared.screen import (
    Refused,
    aws_faults,
    bar,
    confirm,
    errors,
    print_answer,
    print_line,
    screen,
    status,
)
from mailroom_ops.shared.selected_messages import MessageRef, selected
from mailroom_ops.shared.stage_queues import DeployedStage
from mailroom_ops.shared.times import duration, seconds_of, short

ALL = "all"
FOLLOWS: dict[Word, str] = {
    "sent": "It is never sent again without mailroom resend --force.",
    "failed": "Callbacks are sent, and mailroom resend can send it again.",
}
SENTENCES: dict[State, str] = {
    "fine": "on its way, waiting for its time or its campaign's run, or completed; mailroom status shows it",
    "missing": "in the mailbox, but without a record: if it is put back, it is sent once",
    "overdue": "started, but unchanged for too long: if it is put back, it is sent once",
    "dead_letter": "a dead letter: fix its cause (mailroom dead-letters show), then put it back by its id, "
    "or with mailroom repair --dead-letters",
    "gone": "started, but it is no longer in the mailbox. It may have been sent, or may still be queued: "
    "ask its provider, then record its outcome by --as. Under a new id it may be sent twice",
    "forgotten": "without a record, which may have expired, so it may have been sent. If you know "
    "that it was never sent, put it back by its id, or all such messages with --include-forgotten",
    "unknown": "not in the mailbox, and without a record; check the id, --channel and --stage",
}
"""Sentences about a message, by its state."""
_SHOWN = 50


class RedrivenQueues(Struct, frozen=True):
    """Output of `repair --dead-letters`."""

    stage: str
    dry_run: bool
    queues: list[Redriven]


def repair(
    ids: Annotated[
        list[str] | None,
        typer.Argument(help="Ids of messages, or - for ids or a command's --json output on standard input."),
    ] = None,
    stage: Stage = "dev",
    *,
    scan: Annotated[
        bool, typer.Option("--scan", help="Search the stage for messages that are stuck.")
    ] = False,
    dead_letters: Annotated[
        str | None,
        typer.Option(metavar="QUEUE", help="Move dead letters back into this queue; all: into all queues."),
    ] = None,
    given_up: Annotated[
        bool, typer.Option("--given-up", help="Replay stream batches that Lambda gave up on.")
    ] = False,
    word: Annotated[
        Word | None, typer.Option("--as", help="Record this outcome of the named messages.")
    ] = None,
    channel: Annotated[str | None, typer.Option(help="With ids: only messages of this channel.")] = None,
    older_than: Annotated[
        str | None, typer.Option(help="Treat a message as stuck after this time: 90s, 15m, 2h, 1d.")
    ] = None,
    include_forgotten: Annotated[
        bool,
        typer.Option("--include-forgotten", help="Also requeue messages that the ledger may have forgotten."),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the repairs; change nothing.")] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Requeue messages that are stuck, move dead letters back, or replay failed batches of a stream.

    The command shows the state of each message and what it would do, asks, and does it. You can run it again
    at any time: a redundant queue message is dropped, so two workers never submit the same attempt. Two risks
    remain, and the question names them. A message that the ledger has forgotten, because its item has
    expired, may be sent twice. A message that you record --as sent, although it was not sent, is never sent.

    ID...: a lost or overdue message is requeued, and a dead letter is moved back into its queue. By naming a
    message that the ledger may have forgotten, you confirm that it was never sent. With --as sent or --as
    failed, you record the outcome of messages whose outcome no worker can find out; first ask the provider or
    the recipient.

    --scan: reads both tables, requeues lost and overdue messages, and counts the others by state. A message
    is lost if it is in the mailbox, and two reads of the ledger 15 minutes apart do not find it. It is
    overdue 15 minutes after its next step was due, or 12 hours later if a queue may hide it. --older-than
    replaces all these times.

    --dead-letters mail: moves the dead letters of a queue back into it. Fix their cause first. With ids (of
    messages or of SQS), it moves only these dead letters.

    --given-up: invokes functions again with the stream batches that Lambda gave up on, the oldest batch
    first.

    To send a failed or bounced message again, use mailroom resend. Exit code 1: something remains to be
    repaired or, in a dry run, would be repaired. 2: the command could not do its work.

    Example: mailroom repair order-42 --stage prod
    """
    with aws_faults(stage):
        _check(ids, scan=scan, dead_letters=dead_letters, given_up=given_up)
        if word is not None and (not ids or dead_letters):
            raise Refused("--as needs ids of messages, and cannot be used with --dead-letters.")
        if channel is not None and (not ids or dead_letters):
            raise Refused("--channel needs ids of messages: give ids too, or leave --channel out.")
        if given_up:
            incomplete = _hand_over(stage, dry_run=dry_run, yes=yes, as_json=as_json)
        elif dead_letters:
            planned = _redrives(stage, dead_letters, ids or [])
            incomplete = _redrive(planned, stage, dry_run=dry_run, yes=yes, as_json=as_json)
        else:
            seconds = None if older_than is None else float(seconds_of(older_than))
            refs = selected(ids, channel, sys.stdin, stage) if ids else None
            deployed = DeployedStage.of(aws_session(), stage)
            by_id = refs is not None
            if by_id and seconds is None:
                # A named message counts as overdue after 15 minutes, even if a queue may hide it for longer.
                seconds = PATIENCE_SECONDS
            repairs = Repairs.of(deployed, older_than=seconds, confirmed=include_forgotten or by_id)
            ask = partial(confirm, yes=yes, piped="-" in (ids or ()))
            if refs is not None and word is not None:
                answer = _end(repairs, deployed, refs, word, ask, dry_run=dry_run, quiet=as_json)
            else:
                candidates = _scan(repairs, stage, quiet=as_json) if refs is None else repairs.named(refs)
                answer = _repair(repairs, candidates, ask, dry_run=dry_run, quiet=as_json)
            print_answer(answer, partial(_show, by_id=by_id), as_json=as_json)
            incomplete = answer.incomplete
    raise typer.Exit(1 if incomplete else 0)


def _check(ids: list[str] | None, *, scan: bool, dead_letters: str | None, given_up: bool) -> None:
    """Raise Refused unless the options select exactly one kind of repair."""
    modes = [bool(ids) and not dead_letters, scan, dead_letters is not None, given_up]
    if sum(modes) != 1 or (ids and not dead_letters and (scan or given_up)):
        raise Refused(
            "Say what to repair: the ids of messages, or one of --scan, --dead-letters QUEUE and --given-up. "
            "Only --dead-letters can be combined with ids."
        )


Ask = Callable[[str], None]
"""Function that asks a question, and ends the command if the answer is no."""


# messages


def _scan(repairs: Repairs, stage: str, *, quiet: bool) -> Candidates:
    """Scan both tables, wait until messages that are still missing count as lost, and return the
    candidates."""
    with status(f"reading the tables of {stage}", quiet=quiet) as say:
        candidates = repairs.scan(lambda seen: say(f"reading the tables of {stage}: {seen:,} read"))
    seconds = repairs.second_look_in(candidates)
    if seconds:
        if not quiet:
            words = "Some messages of the mailbox are not in the ledger; looking again in"
            errors.print(f"{words} {duration(seconds)}.", soft_wrap=True)
        with status("waiting", quiet=quiet):
            time.sleep(seconds)
    return candidates


def _repair(repairs: Repairs, candidates: Candidates, ask: Ask, *, dry_run: bool, quiet: bool) -> Repaired:
    with status("looking at the messages", quiet=quiet):
        answer = repairs.look(candidates, dry_run=dry_run)
    if not quiet:
        for sentence in _sentences(answer):
            print_line(sentence)
    if dry_run or not answer.ready:
        return answer
    ask(_question(answer))
    with status("repairing", quiet=quiet):
        return repairs.repair(candidates, answer)


def _end(
    repairs: Repairs,
    deployed: DeployedStage,
    refs: list[MessageRef],
    word: Word,
    ask: Ask,
    *,
    dry_run: bool,
    quiet: bool,
) -> Repaired:
    candidates = repairs.named(refs)
    answer = repairs.look(candidates, dry_run=dry_run)
    pairs = [pair for batch in repairs.judged(candidates) for pair in batch]
    possible = [message for diagnosis, message in pairs if "end" in diagnosis.cures]
    if not quiet:
        for _, message in pairs:
            if message.ledger is not None:
                entry, now_s = of_ledger(message.ledger), deployed.clock()
                show(entry, view_of(entry, deployed.stage, now_s), now_s)
    if possible and not dry_run:
        names = ", ".join(f"{message.key.event_type} {message.key.id}" for message in possible[:_SHOWN])
        further = f" and {len(possible) - _SHOWN:,} more" if len(possible) > _SHOWN else ""
        ask(f"Record {names}{further} of {deployed.stage} as {word}? {FOLLOWS[word]}")
    reasons = [pair[0].not_ended if dry_run else repairs.end(pair, word) for pair in pairs]
    messages = [
        structs.replace(message, done=None if reason or dry_run else "end", why=reason)
        for message, reason in zip(answer.messages, reasons, strict=True)
    ]
    counts = dict(Counter(message.event_type for message in messages if message.done))
    failed = sum(bool(message.why) for message in messages)
    return structs.replace(answer, messages=messages, ready=len(possible), repaired=counts, failed=failed)


def _question(answer: Repaired) -> str:
    question = f"Repair {quantity(answer.ready, 'message')} of {answer.stage}?"
    if not answer.may_go_twice:
        return question
    return (
        f"{question} The ledger may have forgotten {answer.may_go_twice:,} of them. Confirm that they were "
        "never sent. A message that was sent would be sent again."
    )


def _sentences(answer: Repaired) -> Iterator[str]:
    for message in answer.messages[:_SHOWN]:
        channel = f" ({message.event_type})" if message.event_type else ""
        yield f"{message.id}{channel}: {SENTENCES[message.state]}."
    if len(answer.messages) > _SHOWN:
        yield f"and {len(answer.messages) - _SHOWN:,} more; --json has all."
    for state, counts in () if answer.messages else answer.found.items():
        yield f"{sum(counts.values()):,} ({_by_channel(counts)}): {SENTENCES[state]}."


def _by_channel(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{channel} {count:,}".strip() for channel, count in counts.items())


def _show(answer: Repaired, *, by_id: bool) -> None:
    looked = " and ".join(f"{count:,} of the {table}" for table, count in answer.looked_at.items())
    if by_id:
        looked = f"{len(answer.messages):,} named"
    for message in answer.messages:
        if message.why:
            print_line(f"{message.id}: not recorded: {message.why}.")
    if answer.dry_run:
        done = f"{answer.ready:,} would be repaired"
    else:
        done = f"{sum(answer.repaired.values()):,} repaired"
    failed = f", {answer.failed:,} could not be" if answer.failed else ""
    screen.print(f"{looked} looked at; {done}{failed}.")
    if answer.failed and not any(message.why for message in answer.messages):
        screen.print("To see why, read the logs of the functions dispatch and outcomes at this time.")


# dead letters


def _redrives(stage: str, queue: str, only: list[str]) -> list[Redrive]:
    queues = DeadQueues(aws_session(), stage)
    dead_queues = queues.named(None if queue == ALL else queue)
    if only and queue == ALL:
        raise Refused("Name the queue of these dead letters, as in --dead-letters mail.")
    planned = [Redrive(queues, dead_queue, only) for dead_queue in dead_queues]
    return [redrive for redrive in planned if redrive.found or redrive.only]


def _redrive(planned: list[Redrive], stage: str, *, dry_run: bool, yes: bool, as_json: bool) -> bool:
    """Move the dead letters after a question, or only print their numbers in a dry run. Return whether dead
    letters remain."""
    if not as_json:
        for redrive in planned:
            print_line(redrive.sentence())
        if planned:
            print_line("The ledger drops messages that were sent already; expired messages are not sent.")
    if dry_run:
        results = [Redriven(redrive.queue.queue, redrive.found, 0, redrive.found) for redrive in planned]
    else:
        if planned:
            confirm(f"Put them back into the queues of {stage}?", yes=yes)
        results = []
        with bar("moved", quiet=as_json) as advance:
            for redrive in planned:
                results.append(redrive.run(partial(advance, name=redrive.queue.queue)))
    print_answer(RedrivenQueues(stage, dry_run, results), _show_redriven, as_json=as_json)
    return any(result.left for result in results)


def _show_redriven(answer: RedrivenQueues) -> None:
    for result in answer.queues:
        print_line(f"{result.queue}: {result.moved} moved, {result.left} left.")
    if not answer.queues:
        screen.print(f"No dead letters in {answer.stage}.")
    elif not answer.dry_run and any(result.left for result in answer.queues):
        print_line(
            "The remaining dead letters are hidden by another reader, or no longer exist. Run this again."
        )


# batches of a stream


def _hand_over(stage: str, *, dry_run: bool, yes: bool, as_json: bool) -> bool:
    """Replay the failed batches after a question, or only list them in a dry run. Return whether batches
    remain."""
    answer = Replayed(stage, dry_run)
    batches = FailedBatches(aws_session(), stage)
    waiting = batches.waiting()
    if waiting and not dry_run:
        since = waiting[0][0].timestamp()
        many = quantity(len(waiting), "batch waits", "batches wait, the oldest")
        ago = duration(time.time() - since)
        confirm(f"{many} since {short(iso(since))}, {ago} ago. Replay into {stage}?", yes=yes)
    with bar("looked at" if dry_run else "replayed", quiet=as_json) as advance:
        # Batches are read one after another, so that memory does not grow with their number.
        for number, (since_, key) in enumerate(waiting, 1):
            batch = batches.read(key, since_)
            if batch is not None:
                answer.take(batch[0] if dry_run else batches.replay(*batch))
            advance(number, len(waiting))
    print_answer(answer, _show_batches, as_json=as_json)
    return bool(answer.left)


def _show_batches(answer: Replayed) -> None:
    for batch in answer.batches:
        records = f"{quantity(batch.records, 'record')} of {batch.function or 'an unknown function'}"
        print_line(f"{batch.key}: {records} since {short(batch.since)}, {batch.why or batch.condition}")
    if answer.dry_run:
        wait = quantity(answer.found, "batch waits", "batches wait")
        screen.print(f"{wait}; run without --dry-run to replay.")
        return
    screen.print(f"{quantity(answer.replayed, 'batch', 'batches')} replayed, {answer.left:,} left.")
    if answer.left:
        screen.print("To see why, read the logs of these functions at the time of this command.")
