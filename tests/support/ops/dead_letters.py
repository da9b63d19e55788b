"""A stage in process: tables, queues and buckets, for commands about dead letters and people."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from mailroom.aws.dynamo_values import image_of, plain
from tests.support.dynamodb import in_memory_dynamodb
from tests.support.ops.message import PAYLOADS, FakeFunctions
from tests.support.ops.search import make_search
from tests.support.ops.shared import Session, make_table

STAGE = "dev"
TABLES = {
    "mailbox": ("id", "event_type"),
    "ledger": ("id", "event_type"),
    "contents": ("message", "version"),
    "suppressions": ("recipient", "channel"),
    "preferences": ("recipient", "topic"),
    "campaign-runs": ("campaign", "run"),
    "deeds": ("found_by", "asked_at"),
}
Item = dict[str, Any]


class Over:
    """A client with some of its calls replaced."""

    def __init__(self, client: Any, **calls: Callable[..., Any]) -> None:
        self._client = client
        self._calls = calls

    def __getattr__(self, name: str) -> Any:
        return self._calls[name] if name in self._calls else getattr(self._client, name)


class FakeSes:
    """SES's own list; moto has none. `fault` is its response instead."""

    class exceptions:  # noqa: N801 - as boto3 has it
        class NotFoundException(ClientError):
            """The address is not on the list."""

    def __init__(self) -> None:
        self.listed: set[str] = set()
        self.fault: Exception | None = None
        self.asked: list[str] = []

    def delete_suppressed_destination(self, *, EmailAddress: str) -> None:  # noqa: N803
        self.asked.append(EmailAddress)
        if self.fault is not None:
            raise self.fault
        if EmailAddress not in self.listed:
            raise self.exceptions.NotFoundException({"Error": {"Code": "NotFoundException"}}, "Delete")
        self.listed.remove(EmailAddress)


class DeadLettersStage(Session):
    """The stage, and a session in its account. `sqs_calls` replace SQS's own."""

    def __init__(self) -> None:
        self.ses = FakeSes()
        self.functions = FakeFunctions()
        super().__init__({"sesv2": self.ses, "lambda": self.functions})
        self.sqs_calls: dict[str, Callable[..., Any]] = {}
        self.dynamodb: Any = super().client("dynamodb")
        self.sqs: Any = super().client("sqs")
        self.s3: Any = super().client("s3")
        for name, keys in TABLES.items():
            make_table(self.dynamodb, f"mailroom-{STAGE}-{name}", *keys)
        make_search(self.dynamodb)
        self.s3.create_bucket(Bucket=PAYLOADS)
        self.urls: dict[str, str] = {}

    def make_queues(self) -> None:
        """Create queues and their dead-letter queues, which an erasure does not look at."""
        for name in ("mail", "collect", "webhook", "audience"):
            self._queue(name)
            self._queue(f"{name}-dlq")
        for name in ("fax.fifo", "fax-dlq.fifo"):
            self._queue(name, FifoQueue="true")

    def client(self, service_name: Any, *args: Any, **kwargs: Any) -> Any:
        found = super().client(service_name)
        return Over(found, **self.sqs_calls) if service_name == "sqs" else found

    def put(self, table: str, **item: Any) -> None:
        self.dynamodb.put_item(TableName=f"mailroom-{STAGE}-{table}", Item=image_of(item))

    def items(self, table: str) -> list[Item]:
        return [plain(each) for each in self.dynamodb.scan(TableName=f"mailroom-{STAGE}-{table}")["Items"]]

    def item(self, table: str, id_: str, event_type: str = "mail") -> Item:
        """Return the item of a message, or {} if it does not exist."""
        found = [each for each in self.items(table) if (each["id"], each["event_type"]) == (id_, event_type)]
        return found[0] if found else {}

    def send(self, queue: str, body: object, **more: Any) -> str:
        """A message for a queue; its id."""
        text = body if isinstance(body, str) else json.dumps(body)
        reply = self.sqs.send_message(QueueUrl=self.urls[queue], MessageBody=text, **more)
        return str(reply["MessageId"])

    def waiting(self, queue: str) -> list[Any]:
        """Return the bodies that a queue returns now. They stay in it."""
        reply = self.sqs.receive_message(
            QueueUrl=self.urls[queue],
            MaxNumberOfMessages=10,
            VisibilityTimeout=0,
            MessageAttributeNames=["All"],
            MessageSystemAttributeNames=["All"],
        )
        return list(reply.get("Messages", []))

    def bodies(self, queue: str) -> list[Any]:
        return [each["Body"] for each in self.waiting(queue)]

    def objects(self, bucket: str) -> list[str]:
        return [each["Key"] for each in self.s3.list_objects_v2(Bucket=bucket).get("Contents", [])]

    def everything(self, *but: str) -> str:
        """Return all tables as one text, except those in `but`."""
        tables = (table for table in (*TABLES, "search") if table not in but)
        return "".join(json.dumps(self.items(table), default=str) for table in tables)

    def _queue(self, name: str, **attributes: str) -> None:
        reply = self.sqs.create_queue(QueueName=f"mailroom-{STAGE}-{name}", Attributes=attributes)
        self.urls[name] = reply["QueueUrl"]


@contextmanager
def erasable(
    monkeypatch: pytest.MonkeyPatch, of: type[DeadLettersStage] = DeadLettersStage
) -> Iterator[DeadLettersStage]:
    """Use a stage in place of AWS, until the block ends. An erasure need not wait in it."""
    with mock_aws(), in_memory_dynamodb():
        stage = of()
        monkeypatch.setattr("boto3.Session", lambda: stage)
        monkeypatch.setattr("mailroom_ops.people.erase_messages.SETTLED_AFTER", 0)
        yield stage


@contextmanager
def with_dead_letters(monkeypatch: pytest.MonkeyPatch) -> Iterator[DeadLettersStage]:
    """The stage in place of AWS, until the block ends, with queues of which no look waits for messages."""
    monkeypatch.setattr("mailroom_ops.repair.dead_letter_queues.LONG_POLL_SECONDS", 0)
    monkeypatch.setattr("mailroom_ops.repair.redrive.LONG_POLL_SECONDS", 0)
    with erasable(monkeypatch) as stage:
        stage.make_queues()
        yield stage
