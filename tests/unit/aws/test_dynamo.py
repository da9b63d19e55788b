"""DynamoDB's forms: values as plain Python, and one conditional update."""

from decimal import Decimal
from typing import Any

import pytest

from mailroom.aws.dynamo_updates import ConditionFailed, also, assigned, assigned_once, update, values_of
from mailroom.aws.dynamo_values import number, plain, string, strings
from mailroom.message.message import decode, encode
from tests.support.unit.shared import LEDGER, Aws, image

KEY = image(id="m-1", event_type="mail")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"S": "text"}, "text"),
        ({"N": "7"}, 7),
        ({"N": "-7"}, -7),
        ({"N": "1.5"}, Decimal("1.5")),
        ({"N": "123456789012345678"}, 123456789012345678),
        ({"N": "12345678901234567890123456789012345678"}, Decimal("12345678901234567890123456789012345678")),
        ({"N": "1E+125"}, Decimal("1E+125")),
        ({"BOOL": True}, True),
        ({"NULL": True}, None),
        ({"B": b"\x00\xff"}, "AP8="),
        ({"B": "AP8="}, "AP8="),
        ({"SS": ["b", "a"]}, ["a", "b"]),
        ({"NS": ["10", "9", "1.5"]}, [Decimal("1.5"), 9, 10]),
        ({"BS": ["Yg==", "YQ=="]}, ["YQ==", "Yg=="]),
        ({"L": [{"S": "a"}, {"N": "1"}, {"NULL": True}]}, ["a", 1, None]),
        ({"M": {"a": {"M": {"b": {"SS": ["c"]}}}}}, {"a": {"b": ["c"]}}),
        ({"L": []}, []),
        ({"M": {}}, {}),
    ],
)
def test_every_type_of_attribute_becomes_what_json_can_carry(value: dict[str, Any], expected: object) -> None:
    found = plain({"x": value})
    assert found == {"x": expected}
    assert decode(encode(found)) == {"x": expected}


@pytest.mark.parametrize(
    ("digits", "kind"), [("7", int), ("9" * 18, int), ("9" * 19, Decimal), ("7.5", Decimal)]
)
def test_a_whole_number_is_an_int_as_far_as_64_bits_go(digits: str, kind: type) -> None:
    assert type(plain({"x": {"N": digits}})["x"]) is kind


def test_values_take_dynamodbs_form() -> None:
    assert string("a") == {"S": "a"}
    assert number(1.9) == {"N": "1"}
    assert strings("a") == {"S": "a"}
    assert strings(["a", "b"]) == {"L": [{"S": "a"}, {"S": "b"}]}


def test_an_update_sets_removes_and_counts_in_one_write(aws: Aws) -> None:
    aws.put(LEDGER, id="m-1", event_type="mail", former="x", count=4)
    for first in (1, 2):
        update(
            aws.dynamodb,
            LEDGER,
            KEY,
            f"SET #status = :status{also(assigned_once(['first']))} REMOVE former ADD #count :one",
            "attribute_exists(id)",
            {":status": string("sent"), ":first": number(first), ":one": number(1)},
        )
    found = aws.item()
    assert found == {"id": "m-1", "event_type": "mail", "status": "sent", "first": 1, "count": 6}


def test_reserved_words_are_attributes_like_any_other(aws: Aws) -> None:
    sets = {word: string("x") for word in ("status", "ttl", "to", "error", "year", "size", "index")}
    update(aws.dynamodb, LEDGER, KEY, f"SET {assigned(sets)}", "attribute_not_exists(id)", values_of(sets))
    assert set(aws.item()) == {"id", "event_type", *sets}


def test_nothing_is_no_end_of_a_clause() -> None:
    assert also(assigned([])) == also(assigned_once([])) == ""


def x_is(value: int, condition: str) -> Any:
    return "SET x = :x", condition, {":x": number(value)}


def test_a_failed_condition_brings_the_item_along(aws: Aws) -> None:
    aws.put(LEDGER, id="m-1", event_type="mail", status="sent", attempts=3)
    with pytest.raises(ConditionFailed) as caught:
        update(aws.dynamodb, LEDGER, KEY, *x_is(1, "attribute_not_exists(id)"))
    assert caught.value.item == {"id": "m-1", "event_type": "mail", "status": "sent", "attempts": 3}


def test_a_failed_condition_without_an_item_brings_none(aws: Aws) -> None:
    with pytest.raises(ConditionFailed) as caught:
        update(aws.dynamodb, LEDGER, KEY, *x_is(1, "attribute_exists(id)"))
    assert caught.value.item == {}


def test_what_stood_there_comes_back_where_it_is_asked_for(aws: Aws) -> None:
    one, two = x_is(1, "attribute_not_exists(y)"), x_is(2, "attribute_not_exists(y)")
    assert update(aws.dynamodb, LEDGER, KEY, *one) == {}
    assert update(aws.dynamodb, LEDGER, KEY, *two, returns="ALL_OLD")["x"] == 1
    assert update(aws.dynamodb, LEDGER, KEY, *two, returns="ALL_NEW")["x"] == 2


def test_one_entry_of_a_map_changes_as_an_item_does(aws: Aws) -> None:
    name = "ada@mail.example"  # no name that an expression could hold
    aws.put(LEDGER, id="m-1", event_type="mail", recipients={name: {"status": "sent", "error": "x"}})
    change = (
        f"""SET recipients.#entry.#status = :status, {assigned_once(["at"], within="recipients.#entry.")}
        REMOVE recipients.#entry.#error""",
        "recipients.#entry.#status = :before",
        {":before": string("sent"), ":status": string("delivered"), ":at": number(1)},
    )
    update(aws.dynamodb, LEDGER, KEY, *change, names={"#entry": name})
    assert aws.item()["recipients"] == {name: {"status": "delivered", "at": 1}}
    with pytest.raises(ConditionFailed):
        update(aws.dynamodb, LEDGER, KEY, *change, names={"#entry": name})
