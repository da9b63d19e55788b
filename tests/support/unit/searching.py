"""A stage whose messages are findable: the ledger's changes, as its stream tells them, and pages."""

import json
from collections.abc import Iterable
from typing import Any

from msgspec import convert

from mailroom.campaigns.runs import Run
from mailroom.environment import IndexSettings
from mailroom.search.finder import Finder
from mailroom.search.indexer import Indexer
from mailroom.search.rows import Rows
from tests.support.unit.shared import LEDGER, SEARCH, Aws, image
from tests.support.unit.webhooks import Secrets, cached_secret

SETTINGS = IndexSettings(ledger_table=LEDGER, search_table=SEARCH, search_key_name="arn")
KEY = "0123456789abcdefKEY"


def rows_with(text: str = json.dumps({"key": KEY})) -> Rows:
    """Rows that are hashed with a secret of this text."""
    return Rows(cached_secret(Secrets(text), lambda: 0.0))


class Search:
    """`stream` has a record for each message of the ledger, as a stream has one for each write."""

    def __init__(self, aws: Aws, client: Any = None) -> None:
        """`client`: a client for what writes the rows, in place of the usual one."""
        self.aws = aws
        self.indexer = Indexer(SETTINGS, client or aws.dynamodb, rows_with())
        self.finder = Finder(aws.dynamodb, SEARCH, LEDGER, rows_with(), "US")

    def stream(self) -> list[dict[str, Any]]:
        items = self.aws.dynamodb.scan(TableName=LEDGER)["Items"]
        return [ledger_record(each["id"]["S"], each["event_type"]["S"]) for each in items]

    def index(self, records: Iterable[dict[str, Any]] | None = None) -> None:
        self.indexer.handle(self.stream() if records is None else records)

    def rows(self) -> list[dict[str, Any]]:
        return list(self.aws.dynamodb.scan(TableName=SEARCH)["Items"])

    def to(self, recipient: str, **more: Any) -> list[str]:
        """Return the ids of a page of a person's messages."""
        return [each.id for each in self.finder.to(recipient, **more).messages]

    def newest(self, **more: Any) -> list[str]:
        """The ids of a page of all messages."""
        return [each.id for each in self.finder.newest(**more).messages]


def in_run(campaign: str, run: str, begun_at: int) -> Run:
    """A run that began then (epoch seconds), for the ids that it gives to messages."""
    known = {"scheduled_at": run, "start": "s", "valid_from": 1, "state": "collected", "id_secret": "0" * 32}
    return convert({"campaign": campaign, "run": run, "begun_at": begun_at, **known}, Run)


def ledger_record(id_: str, event_type: str = "mail") -> dict[str, Any]:
    """Return a change of a message as in the ledger's stream. The search reads only its key."""
    images = {"NewImage": image(id=id_, event_type=event_type, to="somebody@else.example")}
    return {"eventName": "MODIFY", "dynamodb": {"SequenceNumber": "1", **images}}
