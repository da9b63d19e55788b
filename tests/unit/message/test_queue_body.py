"""A body of a queue: the whole item as JSON, in characters that SQS accepts."""

import re
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mailroom.errors import MAX_DEPTH, Malformed
from mailroom.message.message import decode, encode

REFUSED_BY_SQS = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

texts = st.text(st.characters(exclude_categories=["Cs"]))
numbers = st.integers(-(10**37), 10**37) | st.decimals(-1000, 1000, places=3, allow_nan=False)
values = st.recursive(
    st.none() | st.booleans() | texts | numbers,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(texts, values, max_size=5))
@example({text: text for text in ["\ufffe", "\uffff", "a\0b", "\x1f", "\u2028", "🎉"]})
def test_a_mailbox_item_encoded_for_sqs_has_only_characters_that_sqs_accepts_and_decodes_unchanged(
    item: dict[str, Any],
) -> None:
    body = encode(item)
    assert REFUSED_BY_SQS.search(body) is None
    assert decode(body) == item


@pytest.mark.parametrize("digits", ["1.1", "12345678901234567890.12345678", "1E+100", "-0.5", "1E-120"])
def test_a_decimal_number_keeps_all_digits_when_encoded_for_the_queue_and_decoded(digits: str) -> None:
    number = decode(encode({"n": Decimal(digits)}))["n"]
    assert Decimal(number) == Decimal(digits)


def test_decimal_numbers_are_encoded_as_json_numbers() -> None:
    assert encode({"a": Decimal("1.10"), "b": 7}) == '{"a":1.10,"b":7}'


@pytest.mark.parametrize(
    "text", ["", "{", "no", "[]", '"text"', "null", "5", '{"a": NaN}', "{} {}", '{"a": "\ud800"}']
)
def test_a_queue_body_that_is_not_a_json_object_is_malformed(text: str) -> None:
    with pytest.raises(Malformed, match="the body is not a JSON object: "):
        decode(text)


def test_a_queue_body_with_thousands_of_nested_levels_is_malformed() -> None:
    # Python 3.14 parses such a body, and the limit of levels refuses it. Earlier versions cannot parse it.
    with pytest.raises(Malformed, match=r"the body (is not a JSON object: |has over 500 levels)"):
        decode('{"a": ' + "[" * 5000 + "]" * 5000 + "}")


@pytest.mark.parametrize(
    "digits", ["1E+99999999999999999999", "1E+999999999", "1E+126", "1E-131", f"0.{'1' * 39}"]
)
def test_a_queue_body_with_a_number_outside_the_range_of_dynamodb_is_malformed(digits: str) -> None:
    """Formatting such a number takes minutes and gigabytes."""
    with pytest.raises(Malformed, match="over 38 digits, or outside 1E-130 to 1E\\+125"):
        decode(f'{{"a": {{"b": [{digits}]}}}}')


@pytest.mark.parametrize("levels", [MAX_DEPTH, MAX_DEPTH + 1])
@pytest.mark.parametrize("pair", ["[]", "{}"])
def test_a_queue_body_is_valid_at_the_limit_of_nested_levels_and_malformed_above_it(
    pair: str, levels: int
) -> None:
    """A recursive reader would exceed the recursion limit, and end the batch."""
    begin = '{"a":' if pair == "{}" else "["
    body = '{"a":' + begin * (levels - 2) + pair + pair[1] * (levels - 2) + "}"
    if levels > MAX_DEPTH:
        with pytest.raises(Malformed, match=f"over {MAX_DEPTH} levels of lists and maps; use fewer"):
            decode(body)
    else:
        assert encode(decode(body)) == body


def test_a_queue_body_with_many_brackets_but_few_nested_levels_is_valid() -> None:
    assert len(decode(f'{{"a": [{",".join(["[]"] * 2000)}], "b": "{"[" * 2000}"}}')["a"]) == 2000
