"""A conditional update of DynamoDB, and its expression."""

from typing import Any

import pytest

from mailroom.aws.dynamo_updates import ConditionFailed, Update, update
from mailroom.aws.dynamo_values import number, string
from tests.support.unit.shared import LEDGER, Aws, image

KEY = image(id="m-1", event_type="mail")


def test_one_dynamodb_update_sets_appends_increments_and_removes_attributes(aws: Aws) -> None:
    aws.put(LEDGER, id="m-1", event_type="mail", former="x", count=4)
    for place in (1, 2):
        change = Update(
            sets={"status": string("sent")},
            once={"first": number(place)},
            appends={"history": {"L": [number(place)]}},
            adds={"count": number(1)},
            removes=["former"],
        )
        update(aws.dynamodb, LEDGER, KEY, change.expression, "attribute_exists(id)", change.values)
    assert aws.item() == {
        "id": "m-1",
        "event_type": "mail",
        "status": "sent",
        "first": 1,
        "history": [1, 2],
        "count": 6,
    }


def test_an_update_expression_omits_empty_clauses() -> None:
    assert Update(removes=["a", "b"]).expression == "REMOVE #a, #b"
    assert Update({"a": number(1)}).expression == "SET #a = :a"


def test_attributes_named_like_reserved_words_of_dynamodb_can_be_written(aws: Aws) -> None:
    words = Update({word: string("x") for word in ("status", "ttl", "to", "error", "year", "size", "index")})
    update(aws.dynamodb, LEDGER, KEY, words.expression, "attribute_not_exists(id)", words.values)
    assert set(aws.item()) == {"id", "event_type", *words.sets}


def x_is(value: int, condition: str) -> Any:
    return "SET x = :x", condition, {":x": number(value)}


def test_a_failed_condition_raises_an_error_with_the_existing_item(aws: Aws) -> None:
    aws.put(LEDGER, id="m-1", event_type="mail", status="sent", attempts=3)
    with pytest.raises(ConditionFailed) as caught:
        update(aws.dynamodb, LEDGER, KEY, *x_is(1, "attribute_not_exists(id)"))
    assert caught.value.item == {"id": "m-1", "event_type": "mail", "status": "sent", "attempts": 3}


def test_a_failed_condition_on_a_missing_item_raises_an_error_with_an_empty_item(aws: Aws) -> None:
    with pytest.raises(ConditionFailed) as caught:
        update(aws.dynamodb, LEDGER, KEY, *x_is(1, "attribute_exists(id)"))
    assert caught.value.item == {}


def test_an_update_returns_the_item_before_or_after_the_write_on_request(aws: Aws) -> None:
    one, two = x_is(1, "attribute_not_exists(y)"), x_is(2, "attribute_not_exists(y)")
    assert update(aws.dynamodb, LEDGER, KEY, *one) == {}
    assert update(aws.dynamodb, LEDGER, KEY, *two, returns="ALL_OLD")["x"] == 1
    assert update(aws.dynamodb, LEDGER, KEY, *two, returns="ALL_NEW")["x"] == 2


def test_one_entry_of_a_map_attribute_can_be_updated_under_a_condition(aws: Aws) -> None:
    name = "ada@mail.example"  # no name that an expression could hold
    aws.put(LEDGER, id="m-1", event_type="mail", recipients={name: {"status": "sent", "error": "x"}})
    change = (
        "SET recipients.#entry.#status = :status REMOVE recipients.#entry.#error",
        "recipients.#entry.#status = :before",
        {":before": string("sent"), ":status": string("delivered")},
    )
    update(aws.dynamodb, LEDGER, KEY, *change, names={"#entry": name})
    assert aws.item()["recipients"] == {name: {"status": "delivered"}}
    with pytest.raises(ConditionFailed):
        update(aws.dynamodb, LEDGER, KEY, *change, names={"#entry": name})
