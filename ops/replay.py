"""What the streams gave up on, handed to their functions again."""

import json
from dataclasses import dataclass
from typing import Any

import boto3

_PREFIX = "aws/lambda/"
"""Where Lambda puts an on-failure record: aws/lambda/<mapping>/<shard>/<date>/<name>."""
_DONE = "replayed/"


@dataclass(frozen=True)
class Unprocessed:
    """One batch that Lambda gave up on: its object, its records, why, and whose it is."""

    key: str
    event: dict[str, Any]
    condition: str
    function: str

    @property
    def records(self) -> int:
        """How many stream records it holds."""
        return len(self.event["Records"])


class Replay:
    """Replays one stage's unprocessed batches: the mailbox's to dispatch, the ledger's to outcomes."""

    def __init__(self, session: boto3.Session, stage: str) -> None:
        self._s3 = session.client("s3")
        self._lambda = session.client("lambda")
        account = session.client("sts").get_caller_identity()["Account"]
        self._bucket = f"mailroom-{stage}-unprocessed-{account}-{session.region_name}"
        self._functions = {f"mailroom-{stage}-{short}" for short in ("dispatch", "outcomes")}

    def waiting(self) -> list[Unprocessed]:
        """The batches that wait, oldest first."""
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=_PREFIX)
        objects = [each for page in pages for each in page.get("Contents", [])]
        return [self._read(each["Key"]) for each in sorted(objects, key=lambda each: each["LastModified"])]

    def run(self, batch: Unprocessed) -> bool:
        """Hand a batch to its function; True: all of it went through, and it is moved out of the way.

        A batch of another function is left: whoever can write to the bucket must not choose what is invoked.
        """
        if batch.function not in self._functions:
            return False
        # As compact as Lambda wrote it: a batch may fill the 6 MB that an invocation takes.
        event = json.dumps(batch.event, ensure_ascii=False, separators=(",", ":")).encode()
        reply = self._lambda.invoke(FunctionName=batch.function, Payload=event)
        answer = json.loads(reply["Payload"].read())
        if "FunctionError" in reply or answer.get("batchItemFailures"):
            return False
        source = {"Bucket": self._bucket, "Key": batch.key}
        self._s3.copy_object(Bucket=self._bucket, Key=_DONE + batch.key, CopySource=source)
        self._s3.delete_object(Bucket=self._bucket, Key=batch.key)
        return True

    def _read(self, key: str) -> Unprocessed:
        record = json.loads(self._s3.get_object(Bucket=self._bucket, Key=key)["Body"].read())
        payload = record["payload"]  # S3 destinations alone have it; AWS writes the event as a string
        event = json.loads(payload) if isinstance(payload, str) else payload
        context = record["requestContext"]
        # arn:aws:lambda:region:account:function:name, and :$LATEST at times
        return Unprocessed(key, event, context["condition"], context["functionArn"].split(":")[6])
