"""Helpers of the unit tests: a clock, AWS in process, items and messages."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from botocore.client import BaseClient
from msgspec import convert

from mailroom.aws.dynamo_values import plain
from mailroom.channels.mail.contract import Mail
from mailroom.ledger.claims import Claim, Claimed
from mailroom.ledger.ledger import Ledger
from mailroom.message.message import CampaignStart, Key, Message
from mailroom.message.outcome import ANY_ACCOUNT
from tests.support.dynamodb import InMemoryDynamoDB

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_s3 import S3Client
    from types_boto3_sesv2 import SESV2Client
    from types_boto3_sqs import SQSClient


NOW = datetime(2026, 11, 21, 9, tzinfo=UTC).timestamp()


NOW_MS = int(NOW * 1000)


REGION = "eu-central-1"


LEDGER = "mailroom-test-ledger"


MAILBOX = "mailroom-test-mailbox"


SUPPRESSIONS = "mailroom-test-suppressions"


PREFERENCES = "mailroom-test-preferences"


RUNS = "mailroom-test-campaign-runs"


BUDGETS = "mailroom-test-budgets"


CONTENTS = "mailroom-test-contents"


SEARCH, SEARCH_KEY = "mailroom-test-search", "mailroom-test-search-key"


BUCKET = "mailroom-test-payloads-123456789012-eu-central-1"


TEMPLATES = "mailroom-test-templates-123456789012-eu-central-1"


QUEUES = ("mail", "mail-bulk", "collect", "audience", "feedback", "fax.fifo", "fax-retry", "webhook")


SENDER = "Mailroom <post@mailroom.example>"


LEASE = 120.0


TTL = 90 * 86400.0


Item = dict[str, Any]


class FakeClock:
    """Time that stands still until a test, or the code's own `sleep`, moves it."""

    def __init__(self, now: float = NOW) -> None:
        self.now = now
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@dataclass
class Aws:
    """Clients of the AWS in process, and what the tests made there."""

    dynamodb: "DynamoDBClient"
    sqs: "SQSClient"
    s3: "S3Client"
    sesv2: "SESV2Client"
    urls: dict[str, str] = field(default_factory=dict)

    def item(self, id_: str = "m-1", event_type: str = "mail", table: str = LEDGER) -> Item:
        """Return a table's item in plain Python, or {} if it does not exist."""
        reply = self.dynamodb.get_item(TableName=table, Key=image(id=id_, event_type=event_type))
        return plain(reply.get("Item", {}))

    def put(self, table: str, **attributes: Any) -> None:
        self.dynamodb.put_item(TableName=table, Item=image(**attributes))

    def receive(self, queue: str = "mail") -> list[Any]:
        """The messages that a queue hands out now, ten at most."""
        reply = self.sqs.receive_message(
            QueueUrl=self.urls[queue],
            MaxNumberOfMessages=10,
            MessageAttributeNames=["All"],
            MessageSystemAttributeNames=["All"],
        )
        return list(reply.get("Messages", []))

    def bodies(self, queue: str = "mail") -> list[Item]:
        return [json.loads(each["Body"]) for each in self.receive(queue)]


def before_each_call(patch: pytest.MonkeyPatch, look: Callable[[str], None]) -> None:
    """From here on `look` is told the operation of each call to AWS before the call, and may raise."""

    def watch(make: Any) -> Any:
        def call(client: Any, operation: str, arguments: Any) -> Any:
            look(operation)
            return make(client, operation, arguments)

        return call

    clients: tuple[Any, ...] = (BaseClient, InMemoryDynamoDB)
    for client in clients:
        patch.setattr(client, "_make_api_call", watch(client._make_api_call))


def refuse_calls(patch: pytest.MonkeyPatch) -> None:
    """From here on a call to AWS fails the test."""

    def refuse(operation: str) -> None:
        pytest.fail(f"asks AWS for {operation}")

    before_each_call(patch, refuse)


def image(**attributes: Any) -> dict[str, Any]:
    """Attributes in DynamoDB's form, as a stream's image has them."""
    return {name: _value(value) for name, value in attributes.items()}


def _value(value: Any) -> dict[str, Any]:
    match value:
        case None:
            return {"NULL": True}
        case bool():
            return {"BOOL": value}
        case str():
            return {"S": value}
        case list():
            return {"L": [_value(each) for each in value]}
        case dict():
            return {"M": {name: _value(each) for name, each in value.items()}}
        case _:
            return {"N": str(value)}


def item(**changes: Any) -> Item:
    """A mail item that is right; a change to `...` takes the attribute away."""
    base = {"id": "m-1", "event_type": "mail", "to": "vincent@example.com", "subject": "Hello", "text": "Hi"}
    return {name: value for name, value in {**base, **changes}.items() if value is not ...}


def mail(id_: str = "m-1", **attributes: Any) -> Mail:
    """A message that has passed its checks."""
    known = {"to": "vincent@example.com", "subject": "Hello", "text": "Hi", **attributes}
    variables = {"id": id_, "event_type": "mail", **known}
    if "campaign_start" in known:
        known["campaign_start"] = convert(known["campaign_start"], CampaignStart)
    return Mail(id=id_, event_type="mail", variables=variables, **known)


KEY = Key("m-1", "mail")


def claimed(ledger: Ledger, message: Message | None = None, account: str | None = ANY_ACCOUNT) -> Claimed:
    """A claim that must succeed."""
    claim: Claim = ledger.claim(message or mail(), account)
    assert isinstance(claim, Claimed), claim
    return claim


def crash(ledger: Ledger, clock: FakeClock, account: str | None = ANY_ACCOUNT) -> None:
    """Let a worker crash after its claim of the message `m-1`, and its lease end."""
    claimed(ledger, account=account)
    clock.advance(LEASE)
