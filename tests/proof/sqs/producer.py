"""Producer of the rows in SQS, which also makes their tables and their queue."""

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from os import environ
from typing import Any, cast

import boto3

from lab.bench.functions import create_table
from mailroom.aws.dynamo_values import plain
from mailroom.ledger.ledger import Ledger
from mailroom.ledger.observer import observe
from mailroom.message.message import Key, Reference
from mailroom_local.providers.resend_mail import SECRET
from tests.proof.producer import State, serve
from tests.support.tables import create_ledger
from tests.support.told import ses_event

TABLES = {
    "idempotency": ("id",),
    "suppressions": ("recipient", "channel"),
    "preferences": ("recipient", "topic"),
    "contents": ("message", "version"),
    "campaign-runs": ("campaign", "run"),
    "budgets": ("name",),
}
COUNTS = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible")


class Producer:
    """Queue of one worker, with the mails that are in it."""

    def __init__(self) -> None:
        self._sqs, self._dynamodb = cast(Any, boto3.client("sqs")), boto3.client("dynamodb")
        self._names: list[str] = []
        self._failed: list[str] = []
        self._feedback = Ledger(self._dynamodb, "ledger", lease=0, ttl=1e6, clock=time.time)
        for name, keys in TABLES.items():
            with suppress(self._dynamodb.exceptions.ResourceInUseException):
                create_table(self._dynamodb, name, *keys)
        with suppress(self._dynamodb.exceptions.ResourceInUseException):
            create_ledger(self._dynamodb)
        secrets = boto3.client("secretsmanager")
        with suppress(secrets.exceptions.ResourceExistsException):
            secrets.create_secret(Name=environ["RESEND_SECRET_ARN"], SecretString=json.dumps(SECRET))
        attributes = {"VisibilityTimeout": environ["TIMEOUT_SECONDS"]}
        self._queue = self._sqs.create_queue(QueueName=environ["PLACE"], Attributes=attributes)["QueueUrl"]

    def put(self, names: Sequence[str]) -> None:
        for name in names:
            person = {"email": f"{name}@example.com", "first_name": "Ada", "last_name": "Lovelace"}
            item = {"id": name, "event_type": "mail", **person}
            self._sqs.send_message(QueueUrl=self._queue, MessageBody=json.dumps(item))
        self._names += names

    def report(self, references: Sequence[str]) -> None:
        """Record SES's event of each accepted mail in the ledger."""
        for reference in map(Reference.read, references):
            observe(self._feedback, [ses_event(Key(reference.id, "mail"), "sent", attempt=reference.attempt)])

    def state(self) -> State:
        """Return all mails that were put since the queue was empty as waiting, until it is empty again."""
        response = self._sqs.get_queue_attributes(QueueUrl=self._queue, AttributeNames=COUNTS)
        attributes = response["Attributes"]
        if not any(int(attributes[name]) for name in COUNTS):
            self._failed += filter(self._has_failed, self._names)
            self._names = []
        return {"waiting": " ".join(self._names), "failed": " ".join(self._failed)}

    def _has_failed(self, name: str) -> bool:
        key: Any = {"id": {"S": name}, "event_type": {"S": "mail"}}
        return "error" in plain(self._dynamodb.get_item(TableName="ledger", Key=key).get("Item", {}))


if __name__ == "__main__":
    producer = Producer()
    serve(producer.put, producer.state, producer.report)
