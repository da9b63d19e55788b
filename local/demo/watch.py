"""Watches the stage from outside: ledger, queues, dead letters, what the stream gave up on."""

import time
from collections.abc import Callable
from typing import Any

from boto3.dynamodb.types import TypeDeserializer

from local.aws import ACCOUNT, REGION, STAGE, Endpoints, LocalSession, patient
from local.inbox import fetch
from local.state import LEDGER

POLL_SECONDS = 0.25
QUIET_SECONDS = 2.0
UNPROCESSED = f"mailroom-{STAGE}-unprocessed-{ACCOUNT}-{REGION}"
DEAD_LETTERS = ("-dlq", "-dlq.fifo")
FAXES = "event_type IN (:fax, :webhook)"
MAILS = f"NOT {FAXES}"
DEPTHS = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)


class Unsettled(RuntimeError):
    """The pipeline did not come to rest in time; the message says what it still holds."""


class Watch:
    """Reads; never writes."""

    def __init__(self, endpoints: Endpoints) -> None:
        session = LocalSession()
        self._endpoints = endpoints
        self._dynamodb = session.client("dynamodb", endpoint_url=endpoints.aws, config=patient())
        self._sqs = session.client("sqs", endpoint_url=endpoints.aws, config=patient())
        self._s3 = session.client("s3", endpoint_url=endpoints.aws, config=patient())
        self._queues = self._sqs.list_queues(QueueNamePrefix=f"mailroom-{STAGE}-").get("QueueUrls", [])

    def mails(self) -> list[dict[str, Any]]:
        """The mails that were really sent."""
        return [each for each in fetch(self._endpoints.inbox) if each["channel"] == "mail"]

    def faxes(self) -> list[dict[str, Any]]:
        """The faxes that the provider accepted."""
        return fetch(self._endpoints.faxes)

    def received(self) -> list[dict[str, Any]]:
        """What came to the webhook receiver."""
        return fetch(self._endpoints.received)

    def ledger(self) -> dict[tuple[str, str], dict[str, Any]]:
        """All ledger items by their key."""
        typed = TypeDeserializer()
        pages = self._dynamodb.get_paginator("scan").paginate(TableName=LEDGER, ConsistentRead=True)
        rows = [
            {name: typed.deserialize(value) for name, value in item.items()}
            for page in pages
            for item in page["Items"]
        ]
        return {(row["id"], row["event_type"]): row for row in rows}

    def completed(self, which: str) -> int:
        """How many messages of MAILS or FAXES have come to an end."""
        pages = self._dynamodb.get_paginator("scan").paginate(
            TableName=LEDGER,
            Select="COUNT",
            FilterExpression=f"attribute_exists(completedAt) AND {which}",
            ExpressionAttributeValues={":fax": {"S": "fax"}, ":webhook": {"S": "webhook"}},
        )
        return sum(page["Count"] for page in pages)

    def depths(self, dead: bool = False) -> dict[str, int]:
        """Messages in each queue, or in each dead-letter queue: visible, in flight and delayed."""
        urls = [url for url in self._queues if url.endswith(DEAD_LETTERS) == dead]
        return {url.rpartition("/")[2]: self._depth(url) for url in urls}

    def given_up(self) -> int:
        """Objects in the bucket of what the stream gave up on."""
        return int(self._s3.list_objects_v2(Bucket=UNPROCESSED).get("KeyCount", 0))

    def until_completed(
        self, which: str, count: int, seconds: float, progress: Callable[[int], None]
    ) -> None:
        """Wait until so many messages of MAILS or FAXES have ended. Raises Unsettled after `seconds`."""
        deadline = time.monotonic() + seconds
        while (completed := self.completed(which)) < count:
            progress(completed)
            if time.monotonic() > deadline:
                raise Unsettled(
                    f"{completed} of {count} messages have ended after {seconds:.0f} s. {self._held()}"
                )
            time.sleep(POLL_SECONDS)
        progress(completed)

    def until_quiet(self, seconds: float) -> None:
        """Wait until no queue has held anything for a while. Raises Unsettled after `seconds`."""
        deadline = time.monotonic() + seconds
        empty_since = time.monotonic()
        while time.monotonic() - empty_since < QUIET_SECONDS:
            if any(self.depths().values()):
                empty_since = time.monotonic()
            if time.monotonic() > deadline:
                raise Unsettled(f"The queues are not empty after {seconds:.0f} s. {self._held()}")
            time.sleep(POLL_SECONDS)

    def _held(self) -> str:
        held = {name: depth for name, depth in (self.depths() | self.depths(dead=True)).items() if depth}
        return f"Queues: {held or 'all empty'}; objects the stream gave up on: {self.given_up()}."

    def _depth(self, url: str) -> int:
        answer = self._sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
        attributes = {str(name): value for name, value in answer["Attributes"].items()}
        return sum(int(attributes[name]) for name in DEPTHS)
