"""Invalid input in one burst with valid messages: each gets a sentence, and the others are sent."""

import json
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

import pytest

from lab.harness.expected import Item
from tests.support.pipeline.bad_input import BAD, ODD, Bad
from tests.support.pipeline.items import correlation, mail_item
from tests.support.pipeline.shared import ACCEPTED, Accepted, Pipeline
from tests.support.pipeline.trouble import unprocessed

SETTLED_SECONDS = 30.0


class Burst:
    """The items, and what became of them."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._bucket = f"s3://{pipeline.output('PayloadBucketName')}"
        pipeline.s3.put_object(Bucket=self._bucket[5:], Key="no-json", Body=b"subject: Hello")
        self.bad = {name: self._bad(name, case) for name, case in BAD.items()}
        self.odd = {name: mail_item(f"odd {name}") | attributes for name, attributes in ODD.items()}
        pipeline.put_batch(list(self._mixed()))
        items = [*self.bad.values(), *self.odd.values()]
        for event_type in {item["event_type"] for item in items}:
            ids = [item["id"] for item in items if item["event_type"] == event_type]
            pipeline.until_ended(*ids, event_type=event_type, seconds=SETTLED_SECONDS)
        self.rows = pipeline.ledger_items()
        self.inbox = pipeline.inbox()

    def row(self, item: Item) -> Item:
        return self.rows[item["id"], item["event_type"]]

    def sent(self, item: Item) -> list[Accepted]:
        mark = correlation(item["id"])
        return [each for each in self.inbox if each["content"]["headers"]["X-Correlation-ID"] == mark]

    def remedy(self, case: Bad) -> str:
        return case.remedy.replace("{bucket}", self._bucket)

    def _bad(self, name: str, case: Bad) -> Item:
        return mail_item(case.id or f"bad {name}", **self._filled(case.attributes))

    def _filled(self, value: Any) -> Any:
        """The value with the bucket's name in it."""
        if isinstance(value, dict):
            return {name: self._filled(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self._filled(each) for each in value]
        return value.replace("{bucket}", self._bucket) if isinstance(value, str) else value

    def _mixed(self) -> Iterator[Item]:
        """Bad ones and good ones by turns, as far as they go."""
        for pair in zip_longest(self.bad.values(), self.odd.values()):
            yield from (item for item in pair if item is not None)


@pytest.fixture(scope="module")
def burst(pipeline: Pipeline) -> Burst:
    return Burst(pipeline)


@pytest.mark.parametrize("name", BAD)
def test_a_bad_item_fails_with_a_sentence_that_names_the_field_and_the_remedy(
    burst: Burst, name: str
) -> None:
    case, item = BAD[name], burst.bad[name]
    row = burst.row(item)
    assert (row["status"], row["error"]["code"]) == ("failed", "invalid")
    at, _, problem = row["error"]["message"].partition(": ")
    assert at == case.at or at.startswith(f"{case.at}.")
    assert burst.remedy(case) in problem
    assert "\n" not in row["error"]["message"]
    assert not burst.sent(item)


@pytest.mark.parametrize("name", ODD)
def test_an_unusual_but_valid_item_beside_bad_items_is_sent_once(burst: Burst, name: str) -> None:
    item = burst.odd[name]
    row = burst.row(item)
    assert row["status"] in ACCEPTED, row
    assert row["attempts"] == 1
    assert len(burst.sent(item)) == 1


def test_template_marks_in_a_variable_of_a_mail_are_sent_as_they_are(burst: Burst) -> None:
    (sent,) = burst.sent(burst.odd["template marks in a variable"])
    assert sent["content"]["subject"] == "{{ 7 * 7 }}{% raw %}, there is a message for you"


def test_the_index_failures_of_the_ledger_contains_each_bad_mail(burst: Burst, pipeline: Pipeline) -> None:
    partitions = {burst.row(item)["failed_as"] for item in burst.bad.values() if item["event_type"] == "mail"}
    found = set()
    for partition in partitions:
        pages = pipeline.dynamodb.get_paginator("query").paginate(
            TableName=pipeline.output("LedgerTableName"),
            IndexName="failures",
            KeyConditionExpression="failed_as = :partition",
            ExpressionAttributeValues={":partition": {"S": partition}},
        )
        found |= {image["id"]["S"] for page in pages for image in page["Items"]}
    assert found >= {item["id"] for item in burst.bad.values() if item["event_type"] == "mail"}


@pytest.mark.parametrize("queue", ["Mail", "MailBulk", "Webhook"])
def test_a_bad_item_does_not_become_a_dead_letter(burst: Burst, pipeline: Pipeline, queue: str) -> None:
    dead = "".join(pipeline.dead_letters(pipeline.output(f"{queue}DlqUrl")))
    assert not [item["id"] for item in burst.bad.values() if item["id"] in dead]


def test_lambda_does_not_give_up_a_stream_batch_because_of_a_bad_item(
    burst: Burst, pipeline: Pipeline
) -> None:
    given_up = json.dumps(unprocessed(pipeline))
    assert not [item["id"] for item in burst.bad.values() if json.dumps(item["id"]) in given_up]
