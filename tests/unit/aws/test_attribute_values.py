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


def named(value: object) -> str:
    """The same in every process: a set is written in another order each time."""
    return f"set of {len(value)}" if isinstance(value, set) else repr(value)


@pytest.mark.parametrize("value", VALUES, ids=named)
def test_an_item_looks_as_boto3_would_have_it(value: Any) -> None:
    theirs: Any = TypeSerializer().serialize(value)
    assert same(image_of({"v": value}), {"v": theirs})


@pytest.mark.parametrize(
    "value", [each for each in VALUES if not isinstance(each, (bytes, Binary, set))], ids=repr
)
def test_what_goes_into_a_table_comes_back_as_it_was(value: Any) -> None:
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


@pytest.mark.parametrize(
    ("value", "text"), [(0.1, "0.1"), (1e22, "1E+22"), (-0.5, "-0.5"), (1 / 3, "0.3333333333333333")]
)
def test_a_float_is_its_own_shortest_text(value: float, text: str) -> None:
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
def test_what_dynamodb_cannot_hold_is_refused_by_its_place(value: Any, field: str) -> None:
    with pytest.raises(Invalid) as caught:
        image_of({"v": value})
    assert caught.value.field == field


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


def test_what_lies_too_deep_is_refused_before_python_gives_up() -> None:
    image_of({"v": nested(32)})
    for levels in (33, 100_000):
        with pytest.raises(Invalid, match="lies too deep"):
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
def test_two_items_are_the_same_by_what_they_say(one: Any, other: Any, equal: bool) -> None:
    assert same({"v": one}, {"v": other}) is equal
    assert same({"v": other}, {"v": one}) is equal


def test_an_attribute_more_is_another_item() -> None:
    assert not same({"a": {"N": "1"}}, {"a": {"N": "1"}, "b": {"N": "1"}})


def test_a_size_is_what_the_developer_guide_counts() -> None:
    assert size_of(image_of({"id": "ü"})) == 4
    assert size_of(image_of({"l": [None, True]})) == 1 + 3 + 2 * 2
    assert size_of(image_of({"m": {"ab": "cd"}})) == 1 + 3 + 1 + 4
    assert size_of(image_of({"n": Decimal("1" * 38)})) >= 1 + 20
