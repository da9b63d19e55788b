"""A stage in process for `resend` and `settle`: its tables and queues, and functions that are told of."""

import io
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
import typer
from moto import mock_aws

from lab.harness.stage_client import typed
from mailroom.aws.dynamo_values import plain
from mailroom.ledger.items import FAILURE_KEYS
from mailroom.ledger.ledger import Ledger
from mailroom.ledger.waits import PROJECTED
from mailroom.message.message import Key
from mailroom_ops.repair.resend import resend
from mailroom_ops.repair.settle import settle
from tests.support.dynamodb import in_memory_dynamodb
from tests.support.ops.message import ENVIRONMENT
from tests.support.ops.run_app import run_app
from tests.support.ops.search import VARIABLES as SEARCH
from tests.support.ops.search import make_search
from tests.support.ops.shared import (
    REGION,
    LambdaDouble,
    Session,
    client,
    make_deeds,
    make_runs,
    make_table,
)

LEDGER, MAILBOX = "mailroom-dev-ledger", "mailroom-dev-mailbox"
QUEUES = ("mail", "mail-bulk", "sms", "webhook", "fax-retry")
DEAD = ("mail",)
"""Of the queues, those that have a dead-letter queue."""
DAY = 86_400
Item = dict[str, Any]

app = typer.Typer()
app.command()(resend)
app.command()(settle)


run = partial(run_app, app, columns=80)


class Functions(LambdaDouble):
    """Lambda client that remembers the invocations."""

    def __init__(self, variables: Mapping[str, Mapping[str, str]]) -> None:
        self._variables = variables
        self.invoked: list[tuple[str, list[Item]]] = []
        self.failing: set[str] = set()
        """Sequence numbers that each invocation reports as failed."""
        self.error: str | None = None
        self.mappings: dict[str, str] = {}
        """State of the mapping of each queue, by the queue's short name, which is the mapping's id too."""

    def environment_of(self, name: str) -> Mapping[str, str] | None:
        return self._variables.get(f"mailroom-dev-{name}")

    def get_paginator(self, _operation: str) -> "Functions":
        return self

    def update_event_source_mapping(self, *, UUID: str, Enabled: bool) -> None:  # noqa: N803
        self.mappings[UUID] = "Enabled" if Enabled else "Disabled"

    def list_event_source_mappings(self, *, EventSourceArn: str) -> Item:  # noqa: N803
        name = EventSourceArn.rpartition("mailroom-dev-")[2]
        states = [self.mappings[name]] if name in self.mappings else []
        return {"EventSourceMappings": [{"UUID": name, "State": state} for state in states]}

    def paginate(self, *, EventSourceArn: str = "") -> list[Item]:  # noqa: N803
        if not EventSourceArn:
            arn = f"arn:aws:sqs:{REGION}:123456789012:mailroom-dev-"
            rows = self.mappings.items()
            return [
                {
                    "EventSourceMappings": [
                        {"EventSourceArn": arn + name, "State": state} for name, state in rows
                    ]
                }
            ]
        short = EventSourceArn.rpartition("-")[2]
        arn = f"arn:aws:lambda:{REGION}:123456789012:function:mailroom-dev-send-{short}"
        known = f"mailroom-dev-send-{short}" in self._variables
        return [{"EventSourceMappings": [{"FunctionArn": arn}] if known else []}]

    def invoke(self, *, FunctionName: str, Payload: bytes) -> Item:  # noqa: N803
        records = json.loads(Payload)["Records"]
        self.invoked.append((FunctionName, records))
        numbers = [each["dynamodb"]["SequenceNumber"] for each in records]
        failures = [{"itemIdentifier": each} for each in numbers if each in self.failing]
        failed = {"FunctionError": self.error} if self.error else {}
        answer = json.dumps({"batchItemFailures": failures}).encode()
        return {"StatusCode": 200, "Payload": io.BytesIO(answer), **failed}

    def records(self, short: str) -> list[Item]:
        """The records that a function was invoked with."""
        return [each for name, records in self.invoked if name == f"mailroom-dev-{short}" for each in records]


INDEXES: dict[str, dict[str, tuple[str, ...]]] = {
    "ledger": {
        "failures": FAILURE_KEYS,
        "waiting": ("waits_in", "waits_at", *PROJECTED),
    },
    "preferences": {"topics": ("topic", "opted_out_at")},
}
"""Indexes by table."""


class RepairStage:
    """The stage dev."""

    def __init__(self) -> None:
        self.dynamodb: Any = client("dynamodb")
        self.sqs = client("sqs")
        for name, keys in (
            ("ledger", ("id", "event_type")),
            ("mailbox", ("id", "event_type")),
            ("suppressions", ("recipient", "channel")),
            ("preferences", ("recipient", "topic")),
        ):
            make_table(self.dynamodb, f"mailroom-dev-{name}", *keys, **INDEXES.get(name, {}))
        make_search(self.dynamodb)
        make_runs(self.dynamodb)
        make_deeds(self.dynamodb)
        self.urls = {
            short: self.sqs.create_queue(
                QueueName=f"mailroom-dev-{short}", Attributes={"VisibilityTimeout": "360"}
            )["QueueUrl"]
            for short in QUEUES
        }
        for short in DEAD:
            self._dead_letter_queue(short)
        self.variables = self._variables()
        """Return the environment of each function."""
        self.functions = Functions(self.variables)
        self.functions.mappings = dict.fromkeys(QUEUES, "Enabled")
        self.session = Session({"lambda": self.functions})

    def put(self, *items: Item) -> None:
        """Put items into the mailbox."""
        for item in items:
            self.dynamodb.put_item(TableName=MAILBOX, Item=typed(item))

    def know(self, id_: str, event_type: str = "mail", **attributes: object) -> None:
        """Put an item into the ledger."""
        item = {"id": id_, "event_type": event_type, "updatedAt": "2026-01-01T00:00:00.000Z", **attributes}
        self.dynamodb.put_item(TableName=LEDGER, Item=typed(item))

    def failed(self, id_: str, event_type: str = "mail", **attributes: object) -> None:
        """A message that failed, as the ledger has it."""
        known = {"status": "failed", "completedAt": 1, "attempts": 1, "claim_token": "old"}
        error = {"code": "rejected", "message": "550 no"}
        self.know(id_, event_type, **{**known, "error": error, **attributes})

    def ledger(self, id_: str, event_type: str = "mail") -> Item:
        """A ledger item."""
        key = typed({"id": id_, "event_type": event_type})
        return plain(self.dynamodb.get_item(TableName=LEDGER, Key=key).get("Item", {}))

    def made(self, table: str, at: float) -> None:
        """Let a table be one that was made then (epoch seconds)."""
        self.dynamodb.tables[table].about["CreationDateTime"] = datetime.fromtimestamp(at, UTC)

    def verbs(self) -> Ledger:
        """The ledger, as functions write it."""
        return Ledger(self.dynamodb, LEDGER, lease=60, ttl=1e6, clock=lambda: 1_800_000_000.0)

    def reopen(self, id_: str) -> None:
        """Prepare messages like `resend` before it queues them."""
        assert self.verbs().reopen(Key(id_, "mail"), self.ledger(id_))

    def bodies(self, short: str) -> list[Item]:
        """Return the bodies in a queue. They stay in it."""
        reply = self.sqs.receive_message(
            QueueUrl=self.urls[short],
            MaxNumberOfMessages=10,
            VisibilityTimeout=0,
            MessageAttributeNames=["All"],
        )
        return [json.loads(each["Body"]) for each in reply.get("Messages", [])]

    def _dead_letter_queue(self, short: str) -> None:
        dead = f"{short}-dlq"
        kept: Any = {"MessageRetentionPeriod": str(14 * DAY)}
        self.urls[dead] = self.sqs.create_queue(QueueName=f"mailroom-dev-{dead}", Attributes=kept)["QueueUrl"]
        arn = f"arn:aws:sqs:{REGION}:123456789012:mailroom-dev-{dead}"
        policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 3})
        self.sqs.set_queue_attributes(QueueUrl=self.urls[short], Attributes={"RedrivePolicy": policy})

    def _variables(self) -> dict[str, dict[str, str]]:
        routes = {
            "mail": {"normal": self.urls["mail"], "bulk": self.urls["mail-bulk"]},
            "sms": {"normal": self.urls["sms"]},
            "webhook": {"normal": self.urls["webhook"]},
            "fax": {"normal": self.urls["fax-retry"]},
        }
        dispatch = {
            "LEDGER_TABLE": LEDGER,
            "LEDGER_TTL_SECONDS": str(90 * DAY),
            "PAYLOAD_BUCKET": "payloads",
            "ROUTES": json.dumps(routes),
            "DELAYED_ROUTES": "{}",
            "CALLBACK_SCHEMES": '["https"]',
            "CALLBACK_PORTS": "[443]",
            "DEFAULT_REGION": "US",
        }
        release = {
            "LEDGER_TABLE": LEDGER,
            "BUDGETS_TABLE": "budgets",
            "ROUTES": json.dumps(routes),
            "LINES": json.dumps({channel: {"per_second": 5} for channel in ("mail", "sms")}),
        }
        outcomes = {
            "WEBHOOK_QUEUE_URL": self.urls["webhook"],
            "RETRY_QUEUE_URL": self.urls["fax-retry"],
            "MAX_ATTEMPTS": "20",
            "RETRY_DELAY_SECONDS": "600",
        }
        webhook = {"LEASE_SECONDS": "120", "DELAYS": "[5, 39600]", "SIGNING_SECRET_ARN": "arn"}
        mail = {"LEASE_SECONDS": "120", "BACKOFF_CAP_SECONDS": "900"}
        return {
            "mailroom-dev-dispatch": dispatch,
            "mailroom-dev-release": release,
            "mailroom-dev-outcomes": outcomes,
            "mailroom-dev-send-webhook": webhook,
            "mailroom-dev-send-mail": mail,
            "mailroom-dev-messages-api": {**ENVIRONMENT, "LEDGER_TABLE": LEDGER, **SEARCH},
        }


@contextmanager
def repair_stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[RepairStage]:
    """A stage that the commands take for the account's own; no look at a queue waits."""
    monkeypatch.setattr("mailroom_ops.repair.dead_letter_queues.LONG_POLL_SECONDS", 0)
    monkeypatch.setattr("mailroom_ops.repair.redrive.LONG_POLL_SECONDS", 0)
    with mock_aws(), in_memory_dynamodb():
        stage = RepairStage()
        monkeypatch.setattr("boto3.Session", lambda: stage.session)
        yield stage


def scanned(*arguments: str) -> tuple[int, dict[str, Any]]:
    """Return the exit code and the answer of a scan without a wait."""
    result = run("resend", "--stuck", "--older-than", "0s", *arguments, "--json")
    return result.exit_code, json.loads(result.stdout)


def run_resend(*words: str, typed: str | None = None) -> tuple[int, dict[str, dict[str, Any]]]:
    """Run `resend`. Return its exit code, and the messages of its answer by id."""
    result = run("resend", *words, "--json", typed=typed)
    return result.exit_code, {message["id"]: message for message in json.loads(result.stdout)["messages"]}


def ms_ago(seconds: float) -> int:
    """Return the time of so many seconds ago, in milliseconds."""
    return round((time.time() - seconds) * 1000)
