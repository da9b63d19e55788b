"""A JSON text is changed where its values change, and nowhere else."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops.init.json_text import with_changes

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(max_size=5), VALUES, max_size=5)


@given(OBJECTS, OBJECTS, st.sampled_from([None, 0, 2]))
def test_the_text_then_says_what_it_should_and_the_same_twice(
    now: dict[str, Any], then: dict[str, Any], indent: int | None
) -> None:
    text = f" {json.dumps(now, indent=indent)}\n"
    changed = with_changes(text, now, then)
    assert json.loads(changed) == then
    assert with_changes(changed, then, then) == changed


@pytest.mark.parametrize(
    ("text", "then", "changed"),
    [
        ('{ "a": 1,\t"b": {"c" : [ 1 ]} }', {"a": 2, "b": {"c": [1]}}, '{ "a": 2,\t"b": {"c" : [ 1 ]} }'),
        ('{ "a": { "b": 1 } }', {"a": {"b": 1, "c": [2]}}, '{ "a": { "b": 1, "c": [2] } }'),
        ('{\n    "a": 1\n}', {"a": 1, "b": {"c": "ü"}}, '{\n    "a": 1,\n    "b": { "c": "ü" }\n}'),
        ('{ "a": 1, "b": 2, "c": 3 }', {"a": 1, "c": 3}, '{ "a": 1, "c": 3 }'),
        ('{ "a": 1, "b": 2 }', {"b": 2}, '{ "b": 2 }'),
        ('{ "a": { "b": 1 } }', {"a": {}}, '{ "a": {} }'),
        ('{ "a": null }', {"a": {"b": 1}}, '{ "a": { "b": 1 } }'),
    ],
)
def test_all_other_characters_stay(text: str, then: dict[str, Any], changed: str) -> None:
    assert with_changes(text, json.loads(text), then) == changed


def test_a_long_object_gets_a_line_for_each_of_its_members() -> None:
    long = {"first": "x" * 60, "second": ["y" * 60]}
    assert with_changes("{}", {}, {"a": long}) == (
        '{\n  "a": {\n    "first": "' + "x" * 60 + '",\n    "second": ["' + "y" * 60 + '"]\n  }\n}'
    )
