"""Replays failed batches: batches of a table's stream that Lambda gave up on are sent to their function
again, one after another."""

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, structs

from mailroom.clock import iso
from mailroom_ops.repair.requeuer import NotHandedOver, hand_over
from mailroom_ops.shared.deployed_stage import config_for_invocations, name, unprocessed_bucket

if TYPE_CHECKING:
    import boto3

_PREFIX = "aws/lambda/"
"""Prefix of the keys of on-failure records of Lambda: aws/lambda/<mapping>/<shard>/<date>/<name>."""
_DONE = "replayed/"
_MOST_NAMED = 50
STREAM_READERS = ("dispatch", "outcomes", "index-messages")
"""Functions that read a stream. Batches are replayed only to these functions."""


class FailedBatch(Struct, frozen=True):
    """Failed batch, or another object of the bucket."""

    key: str
    function: str
    """Name of the batch's function; empty for an object that is not a batch."""
    records: int
    condition: str
    """Reason that Lambda states for giving up on the batch."""
    since: str
    """Time when Lambda wrote the batch to the bucket (ISO 8601, UTC)."""
    result: Literal["ready", "replayed", "left"]
    """Result of the replay: `left` if it failed, so that the batch remains. In a dry run, every batch is
    `ready`."""
    why: str = ""
    """Reason why the replay failed; empty if the batch was replayed."""


class Replayed(Struct):
    """Output of `messages resend --given-up`. The bucket had `found` batches with `records` in total, and
    `left` of these batches remain. `batches` lists the first _MOST_NAMED remaining ones; in a dry run, all
    batches remain."""

    stage: str
    dry_run: bool
    found: int = 0
    records: int = 0
    replayed: int = 0
    left: int = 0
    batches: list[FailedBatch] = []

    def take(self, batch: FailedBatch) -> None:
        """Add a batch to the counts."""
        self.found += 1
        self.records += batch.records
        self.replayed += batch.result == "replayed"
        self.left += batch.result != "replayed"
        if batch.result != "replayed" and len(self.batches) < _MOST_NAMED:
            self.batches.append(batch)


class FailedBatches:
    """Reads the failed batches of one stage, and replays each to the function that failed on it.

    A replayed batch is moved to another prefix of the bucket, so an interrupted replay can be run again.
    """

    def __init__(self, session: "boto3.Session", stage: str) -> None:
        self._s3 = session.client("s3")
        self._lambda = session.client("lambda", config=config_for_invocations())
        account = session.client("sts").get_caller_identity()["Account"]
        self._bucket = unprocessed_bucket(stage, account, session.region_name)
        self._functions = {name(stage, short) for short in STREAM_READERS}

    def waiting(self) -> list[tuple[datetime, str]]:
        """Return the time when Lambda wrote each remaining batch, and the batch's key, the oldest first. The
        batches themselves are not read, because they may be many and large."""
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=_PREFIX)
        objects = (entry for page in pages for entry in page.get("Contents", []))
        return sorted((entry["LastModified"], entry["Key"]) for entry in objects)

    def read(self, key: str, since: datetime) -> tuple[FailedBatch, dict[str, Any]] | None:
        """Return the batch in an object, and the event with the records, or None if the object no longer
        exists. If the object is not a batch, the result has neither a function nor records, and its condition
        is `unreadable`."""
        try:
            body = self._s3.get_object(Bucket=self._bucket, Key=key)["Body"].read()
        except self._s3.exceptions.NoSuchKey:
            return None
        since_iso = iso(since.timestamp())
        try:
            record = json.loads(body)
            payload = record["payload"]  # only in records for S3; AWS writes the event as a string
            event = json.loads(payload) if isinstance(payload, str) else payload
            context = record["requestContext"]
            # arn:aws:lambda:region:account:function:name, sometimes with :$LATEST
            function = context["functionArn"].split(":")[6]
            event = {**event, "Records": [*event["Records"]]}
            count, condition = len(event["Records"]), context["condition"]
            batch = FailedBatch(key, function, count, condition, since_iso, "ready")
        except (ValueError, KeyError, TypeError, IndexError, AttributeError):
            return FailedBatch(key, "", 0, "unreadable", since_iso, "ready"), {"Records": []}
        return batch, event

    def replay(self, batch: FailedBatch, event: dict[str, Any]) -> FailedBatch:
        """Invoke a batch's function with its records. If all records succeed, the batch is moved to another
        prefix, and the result is `replayed`. Otherwise the batch remains, and the result is `left`."""
        reason = self._handed_over(batch, event)
        if reason:
            return structs.replace(batch, result="left", why=reason)
        bucket, done = self._bucket, _DONE + batch.key
        self._s3.copy_object(Bucket=bucket, Key=done, CopySource={"Bucket": bucket, "Key": batch.key})
        self._s3.delete_object(Bucket=bucket, Key=batch.key)
        return structs.replace(batch, result="replayed")

    def _handed_over(self, batch: FailedBatch, event: dict[str, Any]) -> str:
        """Return why a part of the batch failed, or an empty text if all records succeeded."""
        # Somebody who can write to the bucket must not be able to choose which function is invoked.
        if batch.function not in self._functions:
            return "its function does not read a stream of this stage; examine the object, and delete it"
        # The JSON is as compact as Lambda's, because a batch may be as large as an invocation allows, 6 MB.
        body = json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()
        try:
            failed = len(hand_over(self._lambda, batch.function, body))
        except NotHandedOver as fault:
            return f"{fault}"
        return f"{failed} of its records failed; see the log of {batch.function}" if failed else ""
