"""Replays the batches of streams that Lambda gave up on: `messages resend --given-up`."""

import time

from mailroom.clock import iso
from mailroom.errors import quantity
from mailroom_ops.repair.failed_batches import FailedBatches, Replayed
from mailroom_ops.shared.deployed_stage import aws_session
from mailroom_ops.shared.screen import bar, confirm, print_answer, print_line, screen
from mailroom_ops.shared.times import duration, short


def replay(stage: str, *, dry_run: bool, yes: bool, as_json: bool) -> bool:
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
