"""Watches the stage from outside: ledger, queues, dead letters, what the stream gave up on."""

from typing import Any

from boto3.dynamodb.types import TypeDeserializer

from local.aws import ACCOUNT, REGION, STAGE, Endpoints, LocalSession, fetch, patient
from local.demo.checks.feedback import Recipient
from local.stage.workspace import LEDGER

UNPROCESSED = f"mailroom-{STAGE}-unprocessed-{ACCOUNT}-{REGION}"
SUPPRESSIONS = f"mailroom-{STAGE}-suppressions"
DEAD_LETTERS = ("-dlq", "-dlq.fifo")
FAXES = "event_type IN (:fax, :webhook)"
MAILS = "NOT event_type IN (:fax, :webhook, :sms, :push)"
CHANNELS = {f":{name}": {"S": name} for name in ("fax", "webhook", "sms", "push")}
DEPTHS = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)


class Watch:
    """Reads; never writes."""

    def __init__(self, endpoints: Endpoints) -> None:
        session = LocalSession()
        self._endpoints = endpoints
        self._dynamodb = session.client("dynamodb", endpoint_url=endpoints.aws, config=patient())
        self._sqs = session.client("sqs", endpoint_url=endpoints.aws, config=patient())
        self._s3 = session.client("s3", endpoint_url=endpoints.aws, config=patient())
        self._queues = self._sqs.list_queues(QueueNamePrefix=f"mailroom-{STAGE}-").get("QueueUrls", [])

    def inbox(self) -> list[dict[str, Any]]:
        """What the providers of all channels accepted."""
        return list(fetch(self._endpoints.inbox))

    def faxes(self) -> list[dict[str, Any]]:
        """The faxes that the provider accepted."""
        return list(fetch(self._endpoints.faxes))

    def received(self) -> list[dict[str, Any]]:
        """What came to the webhook receiver."""
        return list(fetch(self._endpoints.received))

    def events(self) -> dict[str, Any]:
        """How many events SES has published, and what is still to come."""
        return dict(fetch(f"{self._endpoints.providers}/events"))

    def callbacks(self) -> list[dict[str, Any]]:
        """Twilio's status callbacks, and how they were answered."""
        return list(fetch(f"{self._endpoints.providers}/callbacks"))

    def suppressed(self) -> dict[Recipient, str]:
        """The suppression list: reasons by recipient and channel."""
        pages = self._dynamodb.get_paginator("scan").paginate(TableName=SUPPRESSIONS, ConsistentRead=True)
        return {
            (each["recipient"]["S"], each["channel"]["S"]): each["reason"]["S"]
            for page in pages
            for each in page["Items"]
            if "reason" in each
        }

    def statuses(self) -> dict[tuple[str, str], str]:
        """Where each message stands, by its key."""
        pages = self._dynamodb.get_paginator("scan").paginate(
            TableName=LEDGER,
            ProjectionExpression="id, event_type, #status",
            ExpressionAttributeNames={"#status": "status"},
        )
        return {
            (each["id"]["S"], each["event_type"]["S"]): each["status"]["S"]
            for page in pages
            for each in page["Items"]
        }

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
            ExpressionAttributeValues={name: each for name, each in CHANNELS.items() if name in which},
        )
        return sum(page["Count"] for page in pages)

    def depths(self, dead: bool = False) -> dict[str, int]:
        """Messages in each queue, or in each dead-letter queue: visible, in flight and delayed."""
        urls = [url for url in self._queues if url.endswith(DEAD_LETTERS) == dead]
        return {url.rpartition("/")[2]: self._depth(url) for url in urls}

    def given_up(self) -> int:
        """Objects in the bucket of what the stream gave up on."""
        return int(self._s3.list_objects_v2(Bucket=UNPROCESSED).get("KeyCount", 0))

    def held(self) -> str:
        """What the pipeline still holds, in a sentence."""
        held = {name: depth for name, depth in (self.depths() | self.depths(dead=True)).items() if depth}
        return f"Queues: {held or 'all empty'}; objects the stream gave up on: {self.given_up()}."

    def _depth(self, url: str) -> int:
        answer = self._sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
        attributes = {str(name): value for name, value in answer["Attributes"].items()}
        return sum(int(attributes[name]) for name in DEPTHS)
