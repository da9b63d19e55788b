"""What the streams gave up on, handed to their functions again, one batch after another."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from ops.clients import config_for_invocations
from ops.stage import name

_PREFIX = "aws/lambda/"
"""Where Lambda puts an on-failure record: aws/lambda/<mapping>/<shard>/<date>/<name>."""
_DONE = "replayed/"
_STRANGE = "unreadable"
"""The condition of an object that is no on-failure record."""


@dataclass(frozen=True)
class Waiting:
    """An object that waits: its key, and when Lambda wrote it."""

    key: str
    since: datetime


@dataclass(frozen=True)
class Unprocessed:
    """One batch that Lambda gave up on: its object, its records, why, and whose it is. `function` is "" where
    the object is no such batch."""

    key: str
    event: dict[str, Any]
    condition: str
    function: str

    @property
    def records(self) -> int:
        """How many stream records it holds."""
        return len(self.event["Records"])


class Replay:
    """Replays one stage's unprocessed batches: the mailbox's to dispatch, the ledger's to outcomes.

    A batch that went through lies elsewhere from then on, so whoever is interrupted just starts again.
    """

    def __init__(self, session: boto3.Session, stage: str) -> None:
        self._s3 = session.client("s3")
        self._lambda = session.client("lambda", config=config_for_invocations())
        account = session.client("sts").get_caller_identity()["Account"]
        self._bucket = name(stage, f"unprocessed-{account}-{session.region_name}")
        self._functions = {name(stage, short) for short in ("dispatch", "outcomes")}

    def listed(self) -> list[Waiting]:
        """What waits, oldest first: names and times alone, however many and large the batches are."""
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=_PREFIX)
        objects = [
            Waiting(each["Key"], each["LastModified"]) for page in pages for each in page.get("Contents", [])
        ]
        return sorted(objects, key=lambda each: each.since)

    def read(self, key: str) -> Unprocessed | None:
        """The batch in an object; None: there is no such object any more."""
        try:
            body = self._s3.get_object(Bucket=self._bucket, Key=key)["Body"].read()
        except self._s3.exceptions.NoSuchKey:
            return None
        try:
            record = json.loads(body)
            payload = record["payload"]  # S3 destinations alone have it; AWS writes the event as a string
            event = json.loads(payload) if isinstance(payload, str) else payload
            context = record["requestContext"]
            # arn:aws:lambda:region:account:function:name, and :$LATEST at times
            function = context["functionArn"].split(":")[6]
            return Unprocessed(key, {**event, "Records": [*event["Records"]]}, context["condition"], function)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError):
            return Unprocessed(key, {"Records": []}, _STRANGE, "")

    def run(self, batch: Unprocessed) -> str:
        """Hand a batch to its function; "": all of it went through, and it is moved out of the way. Else why
        it is left.

        A batch of another function is left: whoever can write to the bucket must not choose what is invoked.
        """
        if batch.function not in self._functions:
            return "it is none of dispatch or outcomes of this stage; see what it is, and delete it by hand"
        # As compact as Lambda wrote it: a batch may fill the 6 MB that an invocation takes.
        event = json.dumps(batch.event, ensure_ascii=False, separators=(",", ":")).encode()
        if why := self._invoked(batch.function, event):
            return why
        done = _DONE + batch.key
        self._s3.copy_object(
            Bucket=self._bucket, Key=done, CopySource={"Bucket": self._bucket, "Key": batch.key}
        )
        self._s3.delete_object(Bucket=self._bucket, Key=batch.key)
        return ""

    def _invoked(self, function: str, event: bytes) -> str:
        """Invoke it once; why that did not do it all. One batch's fault does not keep the others."""
        try:
            reply = self._lambda.invoke(FunctionName=function, Payload=event)
        except (ClientError, BotoCoreError) as fault:
            return f"it could not be handed over: {fault}"
        answer = json.loads(reply["Payload"].read())
        if "FunctionError" in reply:
            return f"its function failed; see the log of {function}"
        failed = len(answer.get("batchItemFailures", ()))
        return f"{failed} of its records failed; see the log of {function}" if failed else ""
