"""Changes by PartiQL on the emulator: streams and indexes show them, as on DynamoDB."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from mailroom.aws.dynamo_batches import insert
from mailroom_local.aws import LocalSession, patient
from mailroom_local.pump.driver import ask_streams

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

TABLE, INDEX = "ledger", "waiting"
Change = tuple[str, str | None, str | None]
"""Event name of a stream record, and the item's list before and after the change."""


class Ledger:
    """Table with a stream and an index, on the emulator."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.client: DynamoDBClient = LocalSession().client("dynamodb", endpoint_url=url, config=patient())
        created = self.client.create_table(
            TableName=TABLE,
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("id", "list")],
            GlobalSecondaryIndexes=[
                {
                    "IndexName": INDEX,
                    "KeySchema": [{"AttributeName": "list", "KeyType": "HASH"}],
                    "Projection": {"ProjectionType": "ALL"},
                }
            ],
            BillingMode="PAY_PER_REQUEST",
            StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        )
        self._stream = created["TableDescription"]["LatestStreamArn"]

    def changes(self) -> list[Change]:
        """Return the changes in the stream, oldest first. The stream must have a record."""
        described = ask_streams(self.url, "DescribeStream", StreamArn=self._stream)
        (shard,) = described["StreamDescription"]["Shards"]
        start = {"ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
        iterator = ask_streams(self.url, "GetShardIterator", StreamArn=self._stream, **start)["ShardIterator"]
        records = ask_streams(self.url, "GetRecords", ShardIterator=iterator)["Records"]
        return [change_of(record) for record in records]

    def waiting(self, name: str) -> list[str]:
        """Return the ids of the items of a list, by the index."""
        response = self.client.query(
            TableName=TABLE,
            IndexName=INDEX,
            KeyConditionExpression="#list = :list",
            ExpressionAttributeNames={"#list": "list"},
            ExpressionAttributeValues={":list": {"S": name}},
        )
        return [item["id"]["S"] for item in response["Items"]]

    def execute(self, statement: str, *values: str) -> None:
        self.client.execute_statement(**statement_of(statement, *values))

    def transact(self, *statements: Any) -> None:
        self.client.execute_transaction(TransactStatements=statements)


def change_of(record: dict[str, Any]) -> Change:
    change = record["dynamodb"]
    assert change["Keys"] == {"id": {"S": "a"}}
    before, after = (change.get(name, {}).get("list", {}).get("S") for name in ("OldImage", "NewImage"))
    return record["eventName"], before, after


def statement_of(statement: str, *values: str) -> Any:
    return {"Statement": statement, "Parameters": [{"S": value} for value in values]}


def list_key(name: str) -> dict[str, Any]:
    return {"id": {"S": "a"}, "list": {"S": name}}


INSERT = f"""INSERT INTO "{TABLE}" VALUE {{'id': 'a', 'list': ?}}"""
UPDATE = f"""UPDATE "{TABLE}" SET list = ? WHERE id = 'a'"""
DELETE = f"""DELETE FROM "{TABLE}" WHERE id = ?"""


@pytest.fixture
def emulated_ledger(url: str) -> Iterator[Ledger]:
    ledger = Ledger(url)
    yield ledger
    ledger.client.delete_table(TableName=TABLE)


def test_each_change_by_a_statement_has_one_stream_record_with_the_old_and_the_new_item(
    emulated_ledger: Ledger,
) -> None:
    emulated_ledger.execute(INSERT, "due")
    emulated_ledger.execute(UPDATE, "line")
    emulated_ledger.execute(DELETE, "a")
    assert emulated_ledger.changes() == [
        ("INSERT", None, "due"),
        ("MODIFY", "due", "line"),
        ("REMOVE", "line", None),
    ]


def test_an_insert_by_a_batch_statement_has_a_stream_record_unless_the_item_exists(
    emulated_ledger: Ledger,
) -> None:
    assert insert(emulated_ledger.client, TABLE, [list_key("due")]) == [None]
    assert insert(emulated_ledger.client, TABLE, [list_key("line")]) == ["DuplicateItem"]
    assert emulated_ledger.changes() == [("INSERT", None, "due")]


def test_a_transaction_has_stream_records_unless_it_is_cancelled(emulated_ledger: Ledger) -> None:
    emulated_ledger.transact(statement_of(INSERT, "due"))
    with pytest.raises(emulated_ledger.client.exceptions.TransactionCanceledException):
        emulated_ledger.transact(statement_of(UPDATE, "line"), statement_of(INSERT, "due"))
    assert emulated_ledger.changes() == [("INSERT", None, "due")]


def test_an_index_follows_the_insert_the_update_and_the_deletion_of_an_item(emulated_ledger: Ledger) -> None:
    assert not emulated_ledger.waiting("due")  # the emulator builds an index at the first query
    emulated_ledger.execute(INSERT, "due")
    assert emulated_ledger.waiting("due") == ["a"]
    emulated_ledger.execute(UPDATE, "line")
    assert (emulated_ledger.waiting("due"), emulated_ledger.waiting("line")) == ([], ["a"])
    emulated_ledger.execute(DELETE, "a")
    assert not emulated_ledger.waiting("line")
