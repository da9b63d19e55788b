"""`replay`: what the streams gave up on goes back on its way."""

import time
from collections.abc import Callable, Sequence
from typing import Annotated, Literal

import boto3
import typer
from msgspec import Struct
from rich import box
from rich.table import Table

from mailroom.clock import iso
from ops.progress import bar
from ops.replay.replaying import Replay, Unprocessed, Waiting
from ops.screen import AsJson, Stage, Yes, aws_faults, plain, print_json, screen
from ops.times import duration, short

_MOST_NAMED = 50


class Batch(Struct, frozen=True):
    """One batch: its object in the bucket, whose it is ("": it is none), how many records it has, why Lambda
    gave up on it, since when it waits (ISO 8601, UTC), what became of it, and why it is left ("": it is not).
    Of a dry run all are `ready`."""

    key: str
    function: str
    records: int
    condition: str
    since: str
    result: Literal["ready", "replayed", "left"]
    why: str = ""


class Replayed(Struct):
    """Answer of `replay`. `found` batches with `records` waited; `left` wait still. `batches` names those
    that are left, and in a dry run the first ones of all."""

    stage: str
    dry_run: bool
    found: int = 0
    records: int = 0
    replayed: int = 0
    left: int = 0
    batches: list[Batch] = []

    def take(self, batch: Batch) -> None:
        """Count one."""
        self.found += 1
        self.records += batch.records
        self.replayed += batch.result == "replayed"
        self.left += batch.result != "replayed"
        if batch.result != "replayed" and len(self.batches) < _MOST_NAMED:
            self.batches.append(batch)


def replay(
    stage: Stage = "dev",
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what there is; invoke nothing.")] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Put back on its way what the mailbox's and the ledger's streams gave up on.

    Lambda leaves such batches in the stage's "unprocessed" bucket, whole. Each is handed to its function
    again, dispatch or outcomes, the oldest first; one that goes through moves to replayed/ in the same
    bucket, one that does not stays where it is, so an interrupted replay is simply run again. What was queued
    before is not sent twice: the ledger drops it. Says first how many there are, and asks. Exit code 1:
    something is left or, of a dry run, would be replayed. 2: it could not be done.

    Example: mailroom replay --stage prod --dry-run
    """
    with aws_faults(stage):
        replaying = Replay(boto3.Session(), stage)
        listed = replaying.listed()
        if listed and not (dry_run or yes):
            typer.confirm(_question(listed, stage, time.time()), abort=True, err=True)
        with bar("looked at" if dry_run else "replayed", quiet=as_json) as advance:
            answer = _go(replaying, listed, Replayed(stage, dry_run), advance)
    if as_json:
        print_json(answer)
    else:
        _show(answer)
    raise typer.Exit(1 if answer.left else 0)


def _question(listed: Sequence[Waiting], stage: str, now: float) -> str:
    since = listed[0].since.timestamp()
    many = "1 batch waits" if len(listed) == 1 else f"{len(listed):,} batches wait, the oldest"
    return f"{many} since {short(iso(since))}, {duration(now - since)} ago. Replay into {stage}?"


def _go(
    replaying: Replay, listed: Sequence[Waiting], answer: Replayed, advance: Callable[[int, int], None]
) -> Replayed:
    """One batch after another, so that memory does not grow with them."""
    for at, each in enumerate(listed, 1):
        batch = replaying.read(each.key)
        if batch is not None:
            answer.take(_one(replaying, batch, iso(each.since.timestamp()), dry_run=answer.dry_run))
        advance(at, len(listed))
    return answer


def _one(replaying: Replay, batch: Unprocessed, since: str, *, dry_run: bool) -> Batch:
    why = "" if dry_run else replaying.run(batch)
    result: Literal["ready", "replayed", "left"] = "ready" if dry_run else "left" if why else "replayed"
    return Batch(batch.key, batch.function, batch.records, batch.condition, since, result, why)


def _show(answer: Replayed) -> None:
    if answer.batches:
        table = Table("since", "function", "records", "condition", box=box.SIMPLE_HEAD, pad_edge=False)
        for each in answer.batches:
            table.add_row(
                each.since[:19].replace("T", " "),
                plain(each.function or "none of the stage's"),
                str(each.records),
                plain(each.condition),
            )
        screen.print(table)
        # Whole, however narrow the terminal: a key is there to be copied.
        for each in answer.batches:
            screen.print(plain(f"{each.key}: {each.why}" if each.why else each.key), soft_wrap=True)
    if answer.found > len(answer.batches) and answer.dry_run:
        screen.print(f"and {answer.found - len(answer.batches)} more")
    if answer.dry_run:
        screen.print(f"{answer.found} batches wait; run without --dry-run to replay them.")
        return
    screen.print(f"{answer.replayed} batches replayed, {answer.left} left.")
    if answer.left:
        screen.print("Why: the log groups of dispatch and outcomes, by the time of this command.")
