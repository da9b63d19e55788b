"""`replay`: what a table's stream gave up on is handed to its function again, one batch after another."""

import json
import time
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from msgspec import Struct, structs

from mailroom.clock import iso
from ops.options import AsJson, Stage, Yes
from ops.requeue.requeuer import NotHandedOver, hand_over
from ops.screen import aws_faults, bar, confirm, plain, print_answer, print_line, screen, table_of
from ops.stage import aws_session, config_for_invocations, name, unprocessed_bucket
from ops.times import duration, short

if TYPE_CHECKING:
    import boto3

_PREFIX = "aws/lambda/"
"""Where Lambda puts an on-failure record: aws/lambda/<mapping>/<shard>/<date>/<name>."""
_DONE = "replayed/"
_MOST_NAMED = 50


class FailedBatch(Struct, frozen=True):
    """One batch: its object in the bucket, its function ("": the object is no batch), how many records it
    has, why Lambda gave up on it, since when it waits (ISO 8601, UTC), what became of it, and why it is left
    ("": it is not). Of a dry run all are `ready`."""

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
    batches: list[FailedBatch] = []

    def take(self, batch: FailedBatch) -> None:
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
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what there is; invoke nothing.")] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Replay failed stream batches: records that the streams of mailbox and ledger gave up on.

    Lambda puts such batches, whole, into the stage's "unprocessed" bucket. The command prints how many there
    are, and asks. It hands each batch to its function again (dispatch or outcomes), the oldest first. A batch
    that goes through moves to replayed/ in the same bucket; a batch that fails stays. So run an interrupted
    replay again. The ledger drops messages that were queued before, so nothing is sent twice. Exit code 1:
    something is left or, after a dry run, would be replayed. 2: the command could not do its work.

    Example: mailroom replay --stage prod --dry-run
    """
    answer = Replayed(stage, dry_run)
    with aws_faults(stage):
        batches = FailedBatches(aws_session(), stage)
        waiting = batches.waiting()
        if waiting and not dry_run:
            confirm(_question(len(waiting), waiting[0][0].timestamp(), stage), yes=yes)
        with bar("looked at" if dry_run else "replayed", quiet=as_json) as advance:
            # One after another, so that memory does not grow with them.
            for at, (since, key) in enumerate(waiting, 1):
                found = batches.read(key, since)
                if found is not None:
                    answer.take(found[0] if dry_run else batches.replay(*found))
                advance(at, len(waiting))
    print_answer(answer, _show, as_json=as_json)
    raise typer.Exit(1 if answer.left else 0)


class FailedBatches:
    """The failed batches of one stage: the mailbox's are replayed to dispatch, the ledger's to outcomes.

    A batch that went through lies elsewhere from then on, so an interrupted replay is simply run again.
    """

    def __init__(self, session: "boto3.Session", stage: str) -> None:
        self._s3 = session.client("s3")
        self._lambda = session.client("lambda", config=config_for_invocations())
        account = session.client("sts").get_caller_identity()["Account"]
        self._bucket = unprocessed_bucket(stage, account, session.region_name)
        self._functions = {name(stage, short) for short in ("dispatch", "outcomes")}

    def waiting(self) -> list[tuple[datetime, str]]:
        """What waits, oldest first: only when Lambda wrote it and its key, however many and large the batches
        are."""
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=_PREFIX)
        objects = (each for page in pages for each in page.get("Contents", []))
        return sorted((each["LastModified"], each["Key"]) for each in objects)

    def read(self, key: str, since: datetime) -> tuple[FailedBatch, dict[str, Any]] | None:
        """The batch in an object, and the event that holds its records; None: the object is gone. An object
        that is no batch has neither a function nor records, and `unreadable` as its condition."""
        try:
            body = self._s3.get_object(Bucket=self._bucket, Key=key)["Body"].read()
        except self._s3.exceptions.NoSuchKey:
            return None
        at = iso(since.timestamp())
        try:
            record = json.loads(body)
            payload = record["payload"]  # only S3 destinations have it; AWS writes the event as a string
            event = json.loads(payload) if isinstance(payload, str) else payload
            context = record["requestContext"]
            # arn:aws:lambda:region:account:function:name, and :$LATEST at times
            function = context["functionArn"].split(":")[6]
            event = {**event, "Records": [*event["Records"]]}
            batch = FailedBatch(key, function, len(event["Records"]), context["condition"], at, "ready")
        except (ValueError, KeyError, TypeError, IndexError, AttributeError):
            return FailedBatch(key, "", 0, "unreadable", at, "ready"), {"Records": []}
        return batch, event

    def replay(self, batch: FailedBatch, event: dict[str, Any]) -> FailedBatch:
        """Hand a batch to its function. If all of it went through, it is moved out of the way and `replayed`;
        else it is `left`."""
        why = self._handed_over(batch, event)
        if why:
            return structs.replace(batch, result="left", why=why)
        bucket, done = self._bucket, _DONE + batch.key
        self._s3.copy_object(Bucket=bucket, Key=done, CopySource={"Bucket": bucket, "Key": batch.key})
        self._s3.delete_object(Bucket=bucket, Key=batch.key)
        return structs.replace(batch, result="replayed")

    def _handed_over(self, batch: FailedBatch, event: dict[str, Any]) -> str:
        """Why not all of it went through; "": it did."""
        # Whoever can write to the bucket must not choose what is invoked.
        if batch.function not in self._functions:
            return (
                "its function is not this stage's dispatch or outcomes; see what it is, and delete it by hand"
            )
        # As compact as Lambda wrote it: a batch may fill the 6 MB that an invocation takes.
        body = json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()
        try:
            failed = hand_over(self._lambda, batch.function, body)
        except NotHandedOver as fault:
            return f"{fault}"
        return f"{failed} of its records failed; see the log of {batch.function}" if failed else ""


def _question(count: int, since: float, stage: str) -> str:
    many = "1 batch waits" if count == 1 else f"{count:,} batches wait, the oldest"
    return f"{many} since {short(iso(since))}, {duration(time.time() - since)} ago. Replay into {stage}?"


def _show(answer: Replayed) -> None:
    if answer.batches:
        table = table_of("since", "function", "records", "condition")
        for each in answer.batches:
            since = each.since[:19].replace("T", " ")
            function = plain(each.function or "unknown")
            table.add_row(since, function, str(each.records), plain(each.condition))
        screen.print(table)
        # Whole, however narrow the terminal: a key is there to be copied.
        for each in answer.batches:
            print_line(f"{each.key}: {each.why}" if each.why else each.key)
    if not answer.dry_run:
        screen.print(f"{answer.replayed} batches replayed, {answer.left} left.")
        if answer.left:
            screen.print("Why: the log groups of dispatch and outcomes, by the time of this command.")
        return
    if answer.found > len(answer.batches):
        screen.print(f"and {answer.found - len(answer.batches)} more")
    screen.print(f"{answer.found} batches wait; run without --dry-run to replay them.")
