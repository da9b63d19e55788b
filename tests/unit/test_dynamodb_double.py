"""The table double: what Mailroom relies on in DynamoDB, asked of the double and of moto.

With `make oracle` every test compares what it asks for the first time (`_like_moto` in tests/conftest.py).
Here are the edges, each with what DynamoDB promises.
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.support.dynamodb import InMemoryDynamoDB
from tests.support.dynamodb.values import Value

Item = dict[str, Value]
KEY: Item = {"id": {"S": "m-1"}, "kind": {"S": "mail"}}
STANDING: Item = {
    **KEY,
    "word": {"S": "b"},
    "count": {"N": "7"},
    "blank": {"L": []},
    "list": {"L": [{"S": "x"}, {"N": "1.50"}]},
    "tags": {"SS": ["a", "b"]},
    "numbers": {"NS": ["1", "2"]},
    "nothing": {"NULL": True},
    "true": {"BOOL": True},
    "tree": {"M": {"branch": {"M": {"leaf": {"S": "deep"}}}, "digit": {"N": "3"}}},
}
VALUES: Item = {
    ":a": {"S": "a"},
    ":b": {"S": "b"},
    ":one": {"N": "1"},
    ":seven": {"N": "7.0"},
    ":nine": {"N": "9"},
    ":ten": {"N": "10"},
    ":big": {"N": "12345678901234567890"},
    ":decimal": {"N": "1.5"},
    ":set": {"SS": ["b", "c"]},
    ":order": {"SS": ["b", "a"]},
    ":numbers": {"NS": ["2", "1"]},
    ":list": {"L": [{"S": "x"}, {"N": "1.5"}]},
    ":none": {"L": []},
    ":map": {"M": {"leaf": {"S": "deep"}}},
    ":true": {"BOOL": True},
    ":new": {"S": "new"},
}


@pytest.fixture
def tables() -> InMemoryDynamoDB:
    """A table with two keys and an index, and one item."""
    client = InMemoryDynamoDB()
    types = {"id": "S", "kind": "S", "day": "S", "at": "N"}
    client.create_table(
        TableName="t",
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[keyed("id", "HASH"), keyed("kind", "RANGE")],
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": kind} for name, kind in types.items()],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "days",
                "KeySchema": [keyed("day", "HASH"), keyed("at", "RANGE")],
                "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["word"]},
            }
        ],
    )
    client.put_item(TableName="t", Item=STANDING)
    return client


def keyed(name: str, kind: str) -> dict[str, str]:
    return {"AttributeName": name, "KeyType": kind}


def used(values: Item, *texts: str) -> dict[str, Any]:
    """Return the values that these texts mention, as an argument, or no argument if they mention none."""
    words = set(" ".join(texts).replace("(", " ").replace(")", " ").replace(",", " ").split())
    found = {name: value for name, value in values.items() if name in words}
    return {"ExpressionAttributeValues": found} if found else {}


def update(client: InMemoryDynamoDB, text: str, key: Item = KEY, **options: Any) -> Any:
    """An update, with those of VALUES that it mentions."""
    values = used(VALUES, text, options.get("ConditionExpression", ""))
    return client.update_item(TableName="t", Key=key, UpdateExpression=text, **values, **options)


def stored_item(client: InMemoryDynamoDB, key: Item = KEY) -> Item:
    item: Item = client.get_item(TableName="t", Key=key).get("Item", {})
    return item


def error_code(call: Any, **arguments: Any) -> str:
    """The code of the error with which a call ends."""
    with pytest.raises(ClientError) as raised:
        call(TableName="t", **arguments)
    return str(raised.value.response["Error"]["Code"])


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("attribute_exists(id)", True),
        ("attribute_exists(tree.branch.leaf)", True),
        ("attribute_exists(tree.twig.leaf)", False),
        ("attribute_exists(word.leaf)", False),
        ("attribute_not_exists(absent)", True),
        ("attribute_not_exists(nothing)", False),
        ("word = :b", True),
        ("word = :a", False),
        ("absent = :a", False),
        ("absent <> :a", True),
        ("word <> :b", False),
        (":b = word", True),
        ("#count = :seven", True),
        ("#count <> :seven", False),
        ("word = :seven", False),
        ("#count < :nine", True),
        ("#count < :ten", True),  # by value, not by text
        ("#count <= :seven", True),
        ("#count > :seven", False),
        ("#count >= :seven", True),
        ("#count BETWEEN :one AND :seven", True),
        ("#count BETWEEN :nine AND :ten", False),
        ("absent < :nine", False),
        ("absent >= :nine", False),
        ("tags = :order", True),
        ("numbers = :numbers", True),
        ("#list = :list", True),
        ("tree.branch = :map", True),
        ("#true = :true", True),
        ("contains(tags, :a)", True),
        ("contains(tags, :new)", False),
        ("contains(numbers, :one)", True),
        ("contains(word, :b)", True),
        ("contains(#list, :decimal)", True),
        ("contains(absent, :a)", False),
        ("NOT contains(tags, :new)", True),
        ("word IN (:a, :b)", True),
        ("#count IN (:a, :b)", False),
        ("size(tags) < :nine", True),
        ("size(blank) >= :one", False),
        ("size(word) = :one", True),
        ("size(tree) < :nine", True),
        ("attribute_exists(absent) AND word = :b OR word = :b", True),
        ("attribute_exists(absent) AND (word = :b OR word = :b)", False),
        ("NOT attribute_exists(absent) AND word = :b", True),
    ],
)
def test_a_condition_of_the_double_has_the_result_of_dynamodb(
    tables: InMemoryDynamoDB, condition: str, holds: bool
) -> None:
    aliases = {name: name[1:] for name in ("#count", "#list", "#true") if name in condition}
    named: dict[str, Any] = {"ExpressionAttributeNames": aliases} if aliases else {}
    text = "SET fresh = :new"
    if holds:
        update(tables, text, ConditionExpression=condition, **named)
        assert stored_item(tables)["fresh"] == {"S": "new"}
    else:
        with pytest.raises(tables.exceptions.ConditionalCheckFailedException) as refused:
            update(tables, text, ConditionExpression=condition, **named)
        assert "Item" not in refused.value.response
        assert stored_item(tables) == STANDING


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("SET word = :new", {"word": {"S": "new"}}),
        ("SET fresh = :list, word = :map", {"fresh": VALUES[":list"], "word": VALUES[":map"]}),
        ("SET fresh = if_not_exists(fresh, :new)", {"fresh": {"S": "new"}}),
        ("SET word = if_not_exists(word, :new)", {}),
        ("SET fresh = if_not_exists(tree.digit, :new)", {"fresh": {"N": "3"}}),
        ("SET fresh = word", {"fresh": {"S": "b"}}),
        ("SET fresh = if_not_exists(fresh, :one) + :nine", {"fresh": {"N": "10"}}),
        ("SET fresh = if_not_exists(tree.digit, :one) - :nine", {"fresh": {"N": "-6"}}),
        ("SET fresh = list_append(if_not_exists(fresh, :none), :list)", {"fresh": VALUES[":list"]}),
        ("SET blank = list_append(blank, :list)", {"blank": VALUES[":list"]}),
        (
            "SET tree.branch.fresh = :new",
            {
                "tree": {
                    "M": {
                        **STANDING["tree"]["M"],
                        "branch": {"M": {**VALUES[":map"]["M"], "fresh": {"S": "new"}}},
                    }
                }
            },
        ),
        ("REMOVE word, absent", {"word": None}),
        ("REMOVE tree.branch.leaf", {"tree": {"M": {"branch": {"M": {}}, "digit": {"N": "3"}}}}),
        ("ADD fresh :one", {"fresh": {"N": "1"}}),
        ("ADD numbers :numbers", {}),
        ("ADD tags :set", {"tags": {"SS": ["a", "b", "c"]}}),
        ("ADD fresh :set", {"fresh": {"SS": ["b", "c"]}}),
        (
            "SET word = :new REMOVE blank ADD fresh :one",
            {"word": {"S": "new"}, "blank": None, "fresh": {"N": "1"}},
        ),
        ("SET word = :new, fresh = word", {"word": {"S": "new"}, "fresh": {"S": "b"}}),
        ("SET word = :big", {"word": {"N": "12345678901234567890"}}),
    ],
)
def test_an_update_of_the_double_leaves_the_item_that_dynamodb_would_leave(
    tables: InMemoryDynamoDB, text: str, changes: dict[str, Value | None]
) -> None:
    new = {**STANDING, **changes}
    expected = {name: value for name, value in new.items() if value is not None}
    assert update(tables, text, ReturnValues="ALL_NEW") == {"Attributes": expected}
    assert stored_item(tables) == expected


def test_an_update_of_a_missing_item_creates_an_item_with_its_key(tables: InMemoryDynamoDB) -> None:
    key = {**KEY, "id": {"S": "m-2"}}
    assert update(tables, "SET word = :new ADD fresh :one", key, ReturnValues="ALL_OLD") == {}
    assert stored_item(tables, key) == {**key, "word": {"S": "new"}, "fresh": {"N": "1"}}


def test_an_update_of_a_missing_item_that_only_removes_attributes_creates_the_item(
    tables: InMemoryDynamoDB,
) -> None:
    key = {**KEY, "id": {"S": "m-3"}}
    update(tables, "REMOVE word", key)
    assert stored_item(tables, key) == key


@pytest.mark.parametrize(
    "text",
    [
        "SET fresh = absent",
        "SET fresh = absent + :one",
        "SET fresh = word + :one",
        "SET fresh = list_append(absent, :list)",
        "SET fresh = list_append(word, :list)",
        "SET absent.leaf = :new",
        "REMOVE absent.leaf",
        "ADD word :one",
        "ADD tags :one",
        "ADD fresh :new",
        "SET id = :new",
        "SET word = :new REMOVE word",
        "SET tree.branch = :new REMOVE tree.branch.leaf",
        "SET word = :unknown",
        "SET #unknown = :new",
        "SET status = :new",  # a reserved word
        "SET",
        "SET word = :new SET fresh = :new",
        "SET at = :new",  # of another type than its index's key
    ],
)
def test_a_refused_update_does_not_change_the_item(tables: InMemoryDynamoDB, text: str) -> None:
    values = used({**VALUES, ":unused": {"S": "x"}}, text)
    assert error_code(tables.update_item, Key=KEY, UpdateExpression=text, **values) == "ValidationException"
    assert stored_item(tables) == STANDING


def test_a_failed_condition_returns_the_existing_item_on_request(tables: InMemoryDynamoDB) -> None:
    with pytest.raises(tables.exceptions.ConditionalCheckFailedException) as refused:
        update(
            tables,
            "SET word = :new",
            ConditionExpression="attribute_not_exists(id)",
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
    assert refused.value.response["Item"] == STANDING


def test_a_failed_condition_on_a_missing_item_returns_no_item(tables: InMemoryDynamoDB) -> None:
    with pytest.raises(tables.exceptions.ConditionalCheckFailedException) as refused:
        update(
            tables,
            "SET word = :new",
            {**KEY, "id": {"S": "m-2"}},
            ConditionExpression="attribute_exists(id)",
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )
    assert "Item" not in refused.value.response


@pytest.mark.parametrize(
    "given",
    [
        {"ExpressionAttributeNames": {"#unused": "x"}},
        {"ExpressionAttributeValues": {":new": {"S": "n"}, ":unused": {"S": "x"}}},
        {"ExpressionAttributeValues": {}},
    ],
)
def test_an_unused_name_or_value_of_a_request_is_refused(
    tables: InMemoryDynamoDB, given: dict[str, Any]
) -> None:
    request = {"ExpressionAttributeValues": {":new": {"S": "n"}}, **given}
    text = "SET word = :new" if request["ExpressionAttributeValues"] else "REMOVE word"
    assert error_code(tables.update_item, Key=KEY, UpdateExpression=text, **request) == "ValidationException"


@pytest.mark.parametrize(
    "key",
    [
        {"id": {"S": "m-1"}},
        {**KEY, "more": {"S": "x"}},
        {**KEY, "id": {"S": ""}},
    ],
)
def test_a_key_with_missing_additional_or_empty_attributes_is_refused(
    tables: InMemoryDynamoDB, key: Item
) -> None:
    for call in (tables.get_item, tables.delete_item):
        assert error_code(call, Key=key) == "ValidationException"


@pytest.mark.parametrize(
    "changes",
    [
        {"id": {"S": ""}},
        {"id": {"N": "1"}},
        {"id": {"S": "x" * 2049}},
        {"kind": {"S": "x" * 1025}},
        {"word": {"S": "x" * 410_000}},
        {"word": {"SS": []}},
        {"word": {"N": "seven"}},
        {"word": {"N": "1E126"}},
        {"word": {"M": {"branch": {"L": [{"N": " 1"}]}}}},
        {"day": {"S": ""}},
        {"day": {"NULL": True}},
    ],
    ids=str,
)
def test_an_item_that_dynamodb_cannot_store_is_refused_by_the_double(
    tables: InMemoryDynamoDB, changes: Item
) -> None:
    assert error_code(tables.put_item, Item={**KEY, "id": {"S": "m-2"}, **changes}) == "ValidationException"
    assert len(tables.scan(TableName="t")["Items"]) == 1


def test_a_put_replaces_the_item_and_a_delete_returns_it(tables: InMemoryDynamoDB) -> None:
    tables.put_item(TableName="t", Item={**KEY, "word": {"S": "other"}})
    old = tables.delete_item(TableName="t", Key=KEY, ReturnValues="ALL_OLD")
    assert old == {"Attributes": {**KEY, "word": {"S": "other"}}}
    assert tables.delete_item(TableName="t", Key=KEY, ReturnValues="ALL_OLD") == {}


def test_a_stored_item_does_not_change_with_the_dictionary_that_was_put(tables: InMemoryDynamoDB) -> None:
    given: Item = {**KEY, "id": {"S": "m-2"}, "tree": {"M": {"branch": {"S": "x"}}}}
    tables.put_item(TableName="t", Item=given)
    given["tree"]["M"]["branch"] = {"S": "changed"}
    got = stored_item(tables, {**KEY, "id": {"S": "m-2"}})
    got["tree"]["M"]["branch"] = {"S": "changed"}
    assert stored_item(tables, {**KEY, "id": {"S": "m-2"}})["tree"] == {"M": {"branch": {"S": "x"}}}


def several(tables: InMemoryDynamoDB, count: int = 7, text: str = "x") -> None:
    for at in range(count):
        tables.put_item(
            TableName="t",
            Item={
                "id": {"S": "many"},
                "kind": {"S": f"k{at}"},
                "day": {"S": "monday"},
                "at": {"N": str(100 - at * 9)},
                "word": {"S": text},
                "more": {"S": "y"},
            },
        )


def kinds(page: Any) -> list[str]:
    return [each["kind"]["S"] for each in page["Items"]]


@pytest.mark.parametrize("forward", [True, False])
def test_a_query_reads_in_the_order_of_its_sort_key_page_by_page(
    tables: InMemoryDynamoDB, forward: bool
) -> None:
    several(tables)
    request: dict[str, Any] = {
        "KeyConditionExpression": "id = :id",
        "ExpressionAttributeValues": {":id": {"S": "many"}},
        "ScanIndexForward": forward,
        "Limit": 3,
    }
    pages = [kinds(page) for page in tables.get_paginator("query").paginate(TableName="t", **request)]
    expected = sorted((f"k{at}" for at in range(7)), reverse=not forward)
    assert pages == [expected[:3], expected[3:6], expected[6:]]


def test_a_query_of_an_index_returns_items_in_the_order_of_the_index_with_projected_attributes(
    tables: InMemoryDynamoDB,
) -> None:
    several(tables)
    request: dict[str, Any] = {
        "IndexName": "days",
        "KeyConditionExpression": "#day = :day AND #at >= :at",
        "ExpressionAttributeNames": {"#day": "day", "#at": "at"},
        "ExpressionAttributeValues": {":day": {"S": "monday"}, ":at": {"N": "70"}},
        "Limit": 3,
    }
    pages = list(tables.get_paginator("query").paginate(TableName="t", **request))
    assert [kinds(page) for page in pages] == [["k3", "k2", "k1"], ["k0"]]
    assert pages[0]["Items"][0].keys() == {"id", "kind", "day", "at", "word"}


def test_a_query_counts_the_items_of_an_index_page_by_page(tables: InMemoryDynamoDB) -> None:
    several(tables)
    request: dict[str, Any] = {
        "IndexName": "days",
        "KeyConditionExpression": "#day = :day AND #at < :at",
        "ExpressionAttributeNames": {"#day": "day", "#at": "at"},
        "ExpressionAttributeValues": {":day": {"S": "monday"}, ":at": {"N": "100"}},
        "Select": "COUNT",
        "PaginationConfig": {"PageSize": 4},
    }
    pages = list(tables.get_paginator("query").paginate(TableName="t", **request))
    assert [(page["Count"], "Items" in page) for page in pages] == [(4, False), (2, False)]


def test_an_item_that_loses_a_key_of_an_index_leaves_the_index(tables: InMemoryDynamoDB) -> None:
    several(tables, count=1)
    moved = {"id": {"S": "many"}, "kind": {"S": "k0"}}
    tables.update_item(
        TableName="t",
        Key=moved,
        UpdateExpression="REMOVE #day",
        ExpressionAttributeNames={"#day": "day"},
    )
    page = tables.query(
        TableName="t",
        IndexName="days",
        KeyConditionExpression="#day = :day",
        ExpressionAttributeNames={"#day": "day"},
        ExpressionAttributeValues={":day": {"S": "monday"}},
    )
    assert page["Items"] == []


def test_a_consistent_read_of_an_index_is_refused(tables: InMemoryDynamoDB) -> None:
    asked = {"KeyConditionExpression": "#d = :d", "ExpressionAttributeNames": {"#d": "day"}}
    values = {"ExpressionAttributeValues": {":d": {"S": "monday"}}}
    code = error_code(tables.query, IndexName="days", ConsistentRead=True, **asked, **values)
    assert code == "ValidationException"


@pytest.mark.parametrize("key", ["", "x" * 2_049], ids=["empty", "long"])
def test_a_query_for_an_empty_or_too_long_key_is_refused(tables: InMemoryDynamoDB, key: str) -> None:
    values = {"ExpressionAttributeValues": {":id": {"S": key}}}
    assert error_code(tables.query, KeyConditionExpression="id = :id", **values) == "ValidationException"


def test_a_page_of_a_scan_ends_at_a_megabyte(tables: InMemoryDynamoDB) -> None:
    several(tables, text="x" * 300_000)
    pages = list(tables.get_paginator("scan").paginate(TableName="t"))
    assert [len(page["Items"]) for page in pages] == [4, 3, 1]


def test_items_that_a_filter_leaves_out_are_counted_as_read(tables: InMemoryDynamoDB) -> None:
    several(tables)
    page = tables.scan(
        TableName="t",
        FilterExpression="attribute_exists(#day)",
        ProjectionExpression="#day, kind",
        ExpressionAttributeNames={"#day": "day"},
    )
    assert (page["Count"], page["ScannedCount"]) == (7, 8)
    assert page["Items"][0].keys() == {"day", "kind"}


def test_the_segments_of_a_scan_have_each_item_of_the_table_once(tables: InMemoryDynamoDB) -> None:
    for at in range(40):
        tables.put_item(TableName="t", Item={"id": {"S": f"m-{at}"}, "kind": {"S": "mail"}})
    read = [
        each["id"]["S"]
        for segment in range(4)
        for each in tables.scan(TableName="t", Segment=segment, TotalSegments=4)["Items"]
    ]
    assert sorted(read) == sorted(f"m-{at}" for at in range(40))


def test_a_batch_read_returns_the_existing_items(tables: InMemoryDynamoDB) -> None:
    keys = [KEY, {**KEY, "id": {"S": "absent"}}]
    asked = {"t": {"Keys": keys, "ProjectionExpression": "#i", "ExpressionAttributeNames": {"#i": "id"}}}
    assert tables.batch_get_item(RequestItems=asked) == {
        "Responses": {"t": [{"id": {"S": "m-1"}}]},
        "UnprocessedKeys": {},
    }


@pytest.mark.parametrize("keys", [[KEY, KEY], [{**KEY, "id": {"S": str(at)}} for at in range(101)]])
def test_a_batch_read_with_a_repeated_key_or_too_many_keys_is_refused(
    tables: InMemoryDynamoDB, keys: list[Item]
) -> None:
    with pytest.raises(ClientError, match="ValidationException"):
        tables.batch_get_item(RequestItems={"t": {"Keys": keys}})


def test_a_batch_read_returns_keys_beyond_sixteen_megabytes_as_unprocessed(tables: InMemoryDynamoDB) -> None:
    keys = [{"id": {"S": f"large-{at}"}, "kind": {"S": "mail"}} for at in range(50)]
    for key in keys:
        tables.put_item(TableName="t", Item={**key, "word": {"S": "x" * 400_000}})
    reply = tables.batch_get_item(RequestItems={"t": {"Keys": keys, "ConsistentRead": True}})
    left = reply["UnprocessedKeys"]["t"]
    assert left["ConsistentRead"]
    assert len(reply["Responses"]["t"]) + len(left["Keys"]) == 50
    assert 0 < len(left["Keys"]) < 50


def test_a_request_to_a_missing_table_is_an_error(tables: InMemoryDynamoDB) -> None:
    with pytest.raises(tables.exceptions.ResourceNotFoundException):
        tables.get_item(TableName="other", Key=KEY)


@pytest.mark.parametrize(
    ("operation", "request_"),
    [
        ("get_item", {"Key": KEY, "AttributesToGet": ["id"]}),
        ("update_item", {"Key": KEY, "UpdateExpression": "SET word = :new", "ReturnValues": "UPDATED_NEW"}),
        ("update_item", {"Key": KEY, "UpdateExpression": "SET word = :new", "Expected": {}}),
        ("update_item", {"Key": KEY, "UpdateExpression": "REMOVE #l[0]"}),
        ("update_item", {"Key": KEY, "UpdateExpression": "DELETE tags :new"}),
        ("put_item", {"Item": {**KEY, "word": {"X": "?"}}}),
        ("put_item", {"Item": KEY, "ConditionExpression": "begins_with(id, :new)"}),
        ("put_item", {"Item": KEY, "ConditionExpression": "attribute_type(id, :new)"}),
        ("scan", {"Select": "SPECIFIC_ATTRIBUTES"}),
        ("scan", {"ProjectionExpression": "tree.branch"}),
        ("transact_write_items", {"TransactItems": []}),
    ],
    ids=str,
)
def test_a_request_that_the_double_does_not_support_fails_the_test(
    tables: InMemoryDynamoDB, operation: str, request_: dict[str, Any]
) -> None:
    values = used(VALUES, *(str(each) for each in request_.values()))
    names = {"ExpressionAttributeNames": {"#l": "list"}} if "#l" in str(request_) else {}
    with pytest.raises(pytest.fail.Exception, match="does not know"):
        getattr(tables, operation)(TableName="t", **request_, **values, **names)


def test_the_failure_for_an_unsupported_request_is_not_caught_by_except_exception(
    tables: InMemoryDynamoDB,
) -> None:
    def product() -> None:
        with suppress(Exception):
            tables.get_item(TableName="t", Key=KEY, AttributesToGet=["id"])

    with pytest.raises(pytest.fail.Exception):
        product()


def test_only_one_of_many_simultaneous_conditional_writes_succeeds(tables: InMemoryDynamoDB) -> None:
    won = []

    def take(at: int) -> None:
        try:
            update(tables, "SET fresh = :new", ConditionExpression="attribute_not_exists(fresh)")
            won.append(at)
        except tables.exceptions.ConditionalCheckFailedException:
            return

    threads = [threading.Thread(target=take, args=(at,)) for at in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(won) == 1


def inserted(tables: InMemoryDynamoDB, *items: Item, table: str = "t") -> list[str | None]:
    """The errors of one batch of INSERTs."""
    statements = []
    for item in items:
        fields = ", ".join(f"'{name}': ?" for name in item)
        text = f'INSERT INTO "{table}" VALUE {{{fields}}}'
        statements.append({"Statement": text, "Parameters": [*item.values()]})
    reply = tables.batch_execute_statement(Statements=statements)
    return [each.get("Error", {}).get("Code") for each in reply["Responses"]]


NEW: Item = {"id": {"S": "n"}, "kind": {"S": "mail"}}
OTHER: Item = {"id": {"S": "o"}, "kind": {"S": "mail"}}
AGAIN: Item = {**OTHER, "word": {"S": "b"}}
BY_NUMBER: Item = {**OTHER, "id": {"N": "1"}}
KEYLESS: Item = {"kind": {"S": "mail"}}
LARGE: Item = {**OTHER, "word": {"S": "x" * 410_000}}


def write_batch(tables: InMemoryDynamoDB, *items: Item) -> Any:
    puts = [{"PutRequest": {"Item": each}} for each in items]
    return tables.batch_write_item(RequestItems={"t": puts})


def test_a_batch_puts_and_deletes_and_ignores_missing_items(tables: InMemoryDynamoDB) -> None:
    requests = [{"DeleteRequest": {"Key": KEY}}, {"DeleteRequest": {"Key": OTHER}}]
    tables.batch_write_item(RequestItems={"t": [*requests, {"PutRequest": {"Item": NEW}}]})
    assert tables.scan(TableName="t")["Items"] == [NEW]


def transact(tables: InMemoryDynamoDB, *items: Item, **last: Any) -> Any:
    """A put for each item, and what the last one's has besides; then an update, if `Update` gives one."""
    puts = [{"Put": {"TableName": "t", "Item": each}} for each in items]
    if "Update" in last:
        puts.append({"Update": {"TableName": "t", "Key": OTHER, **last["Update"]}})
    else:
        puts[-1]["Put"] |= last
    return tables.transact_write_items(TransactItems=puts)


DUPLICATES = "Provided list of item keys contains duplicates"
TWO_OPERATIONS = "Transaction request cannot include multiple operations on one item"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda tables: inserted(tables, NEW, OTHER, AGAIN), DUPLICATES),
        (lambda tables: inserted(tables, NEW, OTHER, OTHER), DUPLICATES),
        (lambda tables: inserted(tables, NEW, LARGE, LARGE), DUPLICATES),
        (lambda tables: write_batch(tables, NEW, OTHER, AGAIN), DUPLICATES),
        (lambda tables: write_batch(tables, NEW, BY_NUMBER), "key id"),
        (lambda tables: write_batch(tables, NEW, KEYLESS), "key element"),
        (lambda tables: write_batch(tables, NEW, LARGE), "Item size"),
        (lambda tables: transact(tables, NEW, OTHER, AGAIN), TWO_OPERATIONS),
        (lambda tables: transact(tables, NEW, OTHER, Update=updated("SET word = :b")), TWO_OPERATIONS),
        (lambda tables: transact(tables, NEW, BY_NUMBER), "key id"),
        (lambda tables: transact(tables, NEW, KEYLESS), "key element"),
        (lambda tables: transact(tables, NEW, LARGE), "Item size"),
        (lambda tables: transact(tables, NEW, OTHER, ExpressionAttributeValues=VALUES), "unused"),
        (lambda tables: transact(tables, NEW, Update=updated("SETT word = :b")), "Syntax error"),
        (lambda tables: transact(tables, NEW, Update=updated("SET id = :b")), "part of the key"),
    ],
)
def test_a_refused_batch_or_transaction_does_not_write_any_item(
    tables: InMemoryDynamoDB, call: Callable[[InMemoryDynamoDB], object], message: str
) -> None:
    with pytest.raises(ClientError, match=message) as raised:
        call(tables)
    assert raised.value.response["Error"]["Code"] == "ValidationException"
    assert tables.scan(TableName="t")["Items"] == [STANDING]


def updated(text: str) -> dict[str, Any]:
    return {"UpdateExpression": text, **used(VALUES, text)}


@pytest.mark.parametrize(
    ("text", "only_if", "code"),
    [
        ("SET word = :b", "attribute_exists(id)", "ConditionalCheckFailed"),
        ("SET word.leaf = :b", "attribute_not_exists(id)", "ValidationError"),
        ("SET word = tree", "attribute_not_exists(id)", "ValidationError"),
    ],
)
def test_a_cancelled_transaction_names_the_failed_operation_and_does_not_write_any_item(
    tables: InMemoryDynamoDB, text: str, only_if: str, code: str
) -> None:
    with pytest.raises(tables.exceptions.TransactionCanceledException) as cancelled:
        transact(tables, NEW, Update={**updated(text), "ConditionExpression": only_if})
    answer: Any = cancelled.value.response
    assert [each["Code"] for each in answer["CancellationReasons"]] == ["None", code]
    assert tables.scan(TableName="t")["Items"] == [STANDING]


def test_the_error_of_a_statement_in_a_batch_is_in_its_own_response(tables: InMemoryDynamoDB) -> None:
    good: Item = {"id": {"S": "n"}, "kind": {"S": "mail"}}
    wrong: list[Item] = [
        {"id": {"S": "o"}},
        {"id": {"S": ""}, "kind": {"S": "mail"}},
        {"id": {"N": "1"}, "kind": {"S": "mail"}},
        {"id": {"S": "p"}, "kind": {"S": "mail"}, "word": {"S": "x" * 410_000}},
        {"id": STANDING["id"], "kind": STANDING["kind"], "word": {"S": "x" * 410_000}},
    ]
    assert inserted(tables, *wrong, good) == [*["ValidationError"] * 5, None]
    assert inserted(tables, KEY) == ["DuplicateItem"]
    assert inserted(tables, good, table="nothing") == ["ResourceNotFound"]
