"""What a stream gave up on, handed to its function again."""

import json
from dataclasses import dataclass
from typing import Any

import boto3

_PREFIX = "aws/lambda/"
"""Where Lambda puts an on-failure record: aws/lambda/<mapping>/<shard>/<date>/<name>."""
_DONE = "replayed/"


@dataclass(frozen=True)
class Unprocessed:
    """One batch that Lambda gave up on: its object, its records and why."""

    key: str
    event: dict[str, Any]
    condition: str

    @property
    def records(self) -> int:
        """How many stream records it holds."""
        return len(self.event["Records"])


class Replay:
    """Replays one stage's unprocessed batches of the mailbox's stream."""

    def __init__(self, session: boto3.Session, stage: str) -> None:
        self._s3 = session.client("s3")
        self._lambda = session.client("lambda")
        account = session.client("sts").get_caller_identity()["Account"]
        self._bucket = f"mailroom-{stage}-unprocessed-{account}-{session.region_name}"
        self._function = f"mailroom-{stage}-dispatch"

    def waiting(self) -> list[Unprocessed]:
        """The batches that wait, oldest first."""
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=_PREFIX)
        objects = [each for page in pages for each in page.get("Contents", [])]
        return [self._read(each["Key"]) for each in sorted(objects, key=lambda each: each["LastModified"])]

    def run(self, batch: Unprocessed) -> bool:
        """Hand a batch to dispatch; True: all of it went through, and it is moved out of the way."""
        # As compact as Lambda wrote it: a batch may fill the 6 MB that an invocation takes.
        event = json.dumps(batch.event, ensure_ascii=False, separators=(",", ":")).encode()
        reply = self._lambda.invoke(FunctionName=self._function, Payload=event)
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
        return Unprocessed(key, event, record["requestContext"]["condition"])
