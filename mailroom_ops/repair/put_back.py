"""Puts dead letters back into their queues: `messages resend --dead-letters`."""

from functools import partial

from msgspec import Struct

from mailroom_ops.repair.dead_letter_queues import ALL, DeadQueues
from mailroom_ops.repair.redrive import Redrive, Redriven
from mailroom_ops.shared.deployed_stage import aws_session
from mailroom_ops.shared.screen import Refused, bar, confirm, print_answer, print_line, screen


class RedrivenQueues(Struct, frozen=True):
    """Output of `messages resend --dead-letters`."""

    stage: str
    dry_run: bool
    queues: list[Redriven]


def redrives(stage: str, queue: str, only: list[str]) -> list[Redrive]:
    queues = DeadQueues(aws_session(), stage)
    dead_queues = queues.named(None if queue == ALL else queue)
    if only and queue == ALL:
        raise Refused("Name the queue of these dead letters, as in --dead-letters mail.")
    planned = [Redrive(queues, dead_queue, only) for dead_queue in dead_queues]
    return [redrive for redrive in planned if redrive.found or redrive.only]


def put_back(planned: list[Redrive], stage: str, *, dry_run: bool, yes: bool, as_json: bool) -> bool:
    """Move the dead letters after a question, or only print their numbers in a dry run. Return whether dead
    letters remain."""
    if not as_json:
        for redrive in planned:
            print_line(redrive.sentence())
        if planned:
            print_line("Messages that were sent already are not sent again, and expired ones not at all.")
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
