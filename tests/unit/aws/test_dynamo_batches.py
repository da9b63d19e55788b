"""Batches have as many keys as DynamoDB takes, and what it leaves out is asked for again."""

from typing import Any

import pytest

from mailroom.aws.dynamo_batches import UnprocessedKeys, batch_delete, batch_get
from mailroom.aws.dynamo_values import Sets
from tests.support.unit.fakes import Meddler
from tests.support.unit.shared import LEDGER, MAILBOX, Aws, image


def key_images(count: int) -> list[Sets]:
    return [image(id=f"m-{number}", event_type="mail") for number in range(count)]


def test_a_batch_read_requests_at_most_a_hundred_keys_of_all_tables_in_a_call(aws: Aws) -> None:
    aws.put(LEDGER, id="m-149", event_type="mail", status="sent")
    aws.put(MAILBOX, id="m-0", event_type="mail")
    client: Any = Meddler(aws.dynamodb)
    assert batch_get(client, {LEDGER: key_images(150), MAILBOX: key_images(50)}) == {
        LEDGER: [{"id": "m-149", "event_type": "mail", "status": "sent"}],
        MAILBOX: [{"id": "m-0", "event_type": "mail"}],
    }
    assert client.names() == ["batch_get_item"] * 2
    assert batch_get(client, {LEDGER: []}) == {LEDGER: []}
    assert len(client.calls) == 2


def test_keys_that_dynamodb_returns_as_unprocessed_are_read_again(aws: Aws) -> None:
    def two_at_most(real: Any, RequestItems: Any) -> Any:  # noqa: N803 - the name of boto3
        request = RequestItems[LEDGER]
        first, following = request["Keys"][:2], request["Keys"][2:]
        response = real(RequestItems={LEDGER: {**request, "Keys": first}})
        return response | ({"UnprocessedKeys": {LEDGER: {**request, "Keys": following}}} if following else {})

    for key in key_images(5):
        aws.dynamodb.put_item(TableName=LEDGER, Item=key)
    client: Any = Meddler(aws.dynamodb, batch_get_item=two_at_most)
    assert len(batch_get(client, {LEDGER: key_images(5)}, consistent=(LEDGER,))[LEDGER]) == 5
    requests = [arguments["RequestItems"][LEDGER] for _, arguments in client.calls]
    assert [(len(request["Keys"]), request["ConsistentRead"]) for request in requests] == [
        *((5, True), (3, True), (1, True))
    ]


def test_a_batch_read_that_remains_throttled_raises_instead_of_returning_some_items(aws: Aws) -> None:
    def throttled(_real: Any, RequestItems: Any) -> Any:  # noqa: N803 - the name of boto3
        return {"Responses": {}, "UnprocessedKeys": RequestItems}

    client: Any = Meddler(aws.dynamodb, batch_get_item=throttled)
    with pytest.raises(UnprocessedKeys, match=f"{LEDGER} could not be read completely"):
        batch_get(client, {LEDGER: key_images(1)})
    assert len(client.calls) == 4


def test_deletions_that_dynamodb_returns_as_unprocessed_are_made_again(aws: Aws) -> None:
    def one_at_most(real: Any, RequestItems: Any) -> Any:  # noqa: N803 - the name of boto3
        first, *following = RequestItems[LEDGER]
        real(RequestItems={LEDGER: [first]})
        return {"UnprocessedItems": {LEDGER: following} if following else {}}

    for key in key_images(3):
        aws.dynamodb.put_item(TableName=LEDGER, Item=key)
    client: Any = Meddler(aws.dynamodb, batch_write_item=one_at_most)
    batch_delete(client, LEDGER, key_images(3))
    assert aws.dynamodb.scan(TableName=LEDGER)["Items"] == []
    assert client.names() == ["batch_write_item"] * 3


def test_deletions_that_remain_throttled_raise_an_error(aws: Aws) -> None:
    def throttled(_real: Any, RequestItems: Any) -> Any:  # noqa: N803 - the name of boto3
        return {"UnprocessedItems": RequestItems}

    client: Any = Meddler(aws.dynamodb, batch_write_item=throttled)
    with pytest.raises(UnprocessedKeys, match=f"{LEDGER} could not be written completely"):
        batch_delete(client, LEDGER, key_images(1))
