"""A stage with a mailbox, a ledger and queues, in process, and the commands about messages pointed at it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import typer
from moto import mock_aws
from typer.testing import Result

from mailroom.aws.dynamo_values import image_of, plain
from mailroom.ledger.items import FAILURE_KEYS
from mailroom_ops.campaigns.import_command import import_
from mailroom_ops.messages.list_command import list_
from mailroom_ops.messages.send import send
from mailroom_ops.messages.status import show
from tests.support.dynamodb import in_memory_dynamodb
from tests.support.ops.run_app import run_app
from tests.support.ops.search import VARIABLES as SEARCH
from tests.support.ops.search import make_search
from tests.support.ops.shared import ACCOUNT, REGION, LambdaDouble, Session, client, make_deeds, make_table

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

MAILBOX, LEDGER = "mailroom-dev-mailbox", "mailroom-dev-ledger"
PAYLOADS = f"mailroom-dev-payloads-{ACCOUNT}-{REGION}"
ENVIRONMENT = {
    "MAILBOX_TABLE": MAILBOX,
    "LEDGER_TABLE": LEDGER,
    "LEDGER_TTL_SECONDS": "7776000",
    "PAYLOAD_BUCKET": PAYLOADS,
    "LANES": '{"mail": ["normal", "bulk"], "sms": ["normal"], "fax": ["normal"], "webhook": ["normal"]}',
    "CALLBACK_SCHEMES": '["https"]',
    "CALLBACK_PORTS": "[443]",
    "DEFAULT_REGION": "US",
    "MAILBOX_TTL_SECONDS": "0",
    "PAYLOAD_TTL_SECONDS": "7776000",
    **SEARCH,
}
"""Environment of the HTTP API's function."""

DISPATCH = {**ENVIRONMENT, "ROUTES": "{}", "DELAYED_ROUTES": "{}"}
"""Environment of dispatch."""

app = typer.Typer()
for command in (send, show):
    app.command()(command)
app.command("list")(list_)
app.command("import")(import_)


class FakeFunctions(LambdaDouble):
    """Lambda client with the HTTP API's function, dispatch, and the functions that a test adds."""

    def __init__(self) -> None:
        self.environment = dict(ENVIRONMENT)
        self.environments: dict[str, dict[str, str]] = {"dispatch": dict(DISPATCH)}

    def environment_of(self, name: str) -> dict[str, str] | None:
        return self.environment if name == "messages-api" else self.environments.get(name)


class Stage:
    """The deployed stage `dev`."""

    def __init__(self) -> None:
        self.functions = FakeFunctions()
        self.session = Session({"lambda": self.functions})
        self.instead = self.session.instead
        self.dynamodb, self.s3 = client("dynamodb"), client("s3")
        self.sqs: SQSClient = client("sqs")
        self._make()
        make_search(self.dynamodb)
        make_deeds(self.dynamodb)

    def _make(self) -> None:
        self.s3.create_bucket(Bucket=PAYLOADS)
        make_table(self.dynamodb, MAILBOX, "id", "event_type")
        make_table(self.dynamodb, LEDGER, "id", "event_type", failures=FAILURE_KEYS)

    def put(self, table: str, **item: Any) -> None:
        """An item of a table; numbers are numbers."""
        self.dynamodb.put_item(TableName=table, Item=image_of(item))

    def mailbox(self) -> dict[str, dict[str, Any]]:
        """Return all items of the mailbox by id."""
        pages = self.dynamodb.get_paginator("scan").paginate(TableName=MAILBOX)
        return {each["id"]["S"]: plain(each) for page in pages for each in page["Items"]}


run = partial(run_app, app)


def answer(result: Result) -> dict[str, Any]:
    """Return the only JSON object that a command printed."""
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def many() -> dict[str, dict[str, Any]]:
    """Entries of 49 recipients of a mail, two of them with an outcome that is wrong."""
    delivered = {"status": "delivered", "sentAt": 1, "deliveredAt": 1}
    return {
        **{f"p{at}@example.com": delivered for at in range(46)},
        "bob@example.com": {"status": "bounced", "bouncedAt": 1_795_269_600_000, "error": "no such mailbox"},
        "eve@example.com": {"status": "complained"},
        "dan@example.com": {},
    }


def write(path: Path, *lines: str) -> Path:
    """A file of these lines."""
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return path


def write_mails(path: Path, header: str, *rows: str) -> Path:
    """Write a CSV file of mails that say Hello. Empty rows stay empty."""
    return write(path, f"subject,text,{header}", *(row and f"Hello,Hi,{row}" for row in rows))


@contextmanager
def deployed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """The stage, in place of AWS, until the block ends."""
    with mock_aws(), in_memory_dynamodb():
        stage = Stage()
        monkeypatch.setattr("boto3.Session", lambda: stage.session)
        yield stage
