"""Items in DynamoDB's form and back."""

from decimal import Decimal
from typing import Any

import pytest
from boto3.dynamodb.types import Binary, TypeSerializer

from mailroom.aws.dynamo_values import image_of, number, plain, same, size_of, string, strings
from mailroom.errors import Invalid
from mailroom.message.message import decode, encode

VALUES: list[Any] = [
    None,
    True,
    False,
    0,
    -5,
    10**37,
    Decimal("1.5"),
    Decimal("1E+100"),
    "",
    "ü",
    b"\x00\xff",
    Binary(b"\x00"),
    [],
    [1, "a", [None]],
    {},
    {"a": {"b": [True]}},
    {"x", "y"},
    {1, Decimal("2.5")},
]


def name_of_value(value: object) -> str:
    """The same in every process: a set is written in another order each time."""
    return f"set of {len(value)}" if isinstance(value, set) else repr(value)


@pytest.mark.parametrize("value", VALUES, ids=name_of_value)
def test_an_item_is_serialized_to_the_same_dynamodb_json_as_by_boto3(value: Any) -> None:
    theirs: Any = TypeSerializer().serialize(value)
    assert same(image_of({"v": value}), {"v": theirs})


@pytest.mark.parametrize(
    "value", [each for each in VALUES if not isinstance(each, (bytes, Binary, set))], ids=repr
)
def test_a_value_is_unchanged_after_conversion_to_dynamodb_json_and_back(value: Any) -> None:
    found = plain(image_of({"v": value}))["v"]
    assert found == value
    assert type(found) is (Decimal if value == 10**37 else type(value))


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
def test_every_type_of_dynamodb_attribute_is_converted_to_a_value_that_json_can_encode(
    value: dict[str, Any], expected: object
) -> None:
    found = plain({"x": value})
    assert found == {"x": expected}
    assert decode(encode(found)) == {"x": expected}


@pytest.mark.parametrize(
    ("digits", "kind"), [("7", int), ("9" * 18, int), ("9" * 19, Decimal), ("7.5", Decimal)]
)
def test_a_whole_number_of_up_to_18_digits_is_read_as_int_and_a_longer_one_as_decimal(
    digits: str, kind: type
) -> None:
    assert type(plain({"x": {"N": digits}})["x"]) is kind


def test_strings_numbers_and_lists_are_converted_to_dynamodb_json() -> None:
    assert string("a") == {"S": "a"}
    assert number(1.9) == {"N": "1"}
    assert strings("a") == {"S": "a"}
    assert strings(["a", "b"]) == {"L": [{"S": "a"}, {"S": "b"}]}


@pytest.mark.parametrize(
    ("value", "text"), [(0.1, "0.1"), (1e22, "1E+22"), (-0.5, "-0.5"), (1 / 3, "0.3333333333333333")]
)
def test_a_float_is_stored_with_the_fewest_digits_that_identify_it(value: float, text: str) -> None:
    assert image_of({"v": value}) == {"v": {"N": text}}


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (float("nan"), "v"),
        (float("inf"), "v"),
        (Decimal("sNaN"), "v"),
        (int("1" * 39), "v"),
        (Decimal("1E+127"), "v"),
        (object(), "v"),
        ({"a": [1, object()]}, "v.a[1]"),
        ({5: 1}, "v"),
        ({"a": {1: 1}}, "v.a"),
        ("\ud800", "v"),
        (set(), "v"),
        ({1, "a"}, "v"),
        ({True}, "v"),
        ({(1, 2)}, "v"),
    ],
)
def test_a_value_that_dynamodb_cannot_store_is_refused_with_the_path_of_its_attribute(
    value: Any, field: str
) -> None:
    with pytest.raises(Invalid) as caught:
        image_of({"v": value})
    assert caught.value.field == field


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


def test_a_value_nested_more_than_32_levels_is_refused_without_a_recursion_error() -> None:
    image_of({"v": nested(32)})
    for levels in (33, 100_000):
        with pytest.raises(Invalid, match="has too many levels"):
            image_of({"v": nested(levels)})


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ({"N": "1"}, {"N": "1.0"}, True),
        ({"N": "100"}, {"N": "1E+2"}, True),
        ({"N": "1"}, {"BOOL": True}, False),
        ({"N": "1"}, {"S": "1"}, False),
        ({"NS": ["1", "2"]}, {"NS": ["2.0", "1"]}, True),
        ({"SS": ["a", "b"]}, {"SS": ["b", "a"]}, True),
        ({"L": [{"N": "1"}]}, {"L": [{"N": "1"}, {"N": "1"}]}, False),
        ({"L": [{"N": "1"}]}, {"L": [{"N": "2"}]}, False),
        ({"M": {"a": {"NULL": True}}}, {"M": {}}, False),
        ({"M": {"a": {"N": "10"}}}, {"M": {"a": {"N": "1E1"}}}, True),
        ({"B": b"a"}, {"B": Binary(b"a")}, True),
    ],
)
def test_two_items_are_equal_exactly_if_their_attributes_have_equal_values_in_any_notation(
    one: Any, other: Any, equal: bool
) -> None:
    assert same({"v": one}, {"v": other}) is equal
    assert same({"v": other}, {"v": one}) is equal


def test_two_items_are_not_equal_if_one_has_an_additional_attribute() -> None:
    assert not same({"a": {"N": "1"}}, {"a": {"N": "1"}, "b": {"N": "1"}})


def test_the_size_of_an_item_follows_the_rules_of_the_dynamodb_developer_guide() -> None:
    assert size_of(image_of({"id": "ü"})) == 4
    assert size_of(image_of({"l": [None, True]})) == 1 + 3 + 2 * 2
    assert size_of(image_of({"m": {"ab": "cd"}})) == 1 + 3 + 1 + 4
    assert size_of(image_of({"n": Decimal("1" * 38)})) >= 1 + 20
