"""The section of a stage is written into cdk.json; what else the file says stays."""

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mailroom_ops.init.cdk_json import CdkJson

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)
SECTIONS = st.dictionaries(st.text(max_size=5), VALUES, max_size=5)


def written(text: str, name: str, section: dict[str, Any]) -> str:
    """The text of a cdk.json, with this section of a stage."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "cdk.json")
        path.write_bytes(text.encode())
        return CdkJson(path).with_stage(name, section)


@given(SECTIONS, SECTIONS, SECTIONS, st.sampled_from([None, 0, 2]))
def test_the_text_then_says_what_it_should_and_the_same_twice(
    now: dict[str, Any], then: dict[str, Any], other: dict[str, Any], indent: int | None
) -> None:
    stages = {"prod": other, "dev": now}
    document = {"app": "ü", "context": {"mailroom": stages, "last": [1, {}, []]}}
    changed = written(f" {json.dumps(document, indent=indent)}\n", "dev", then)
    stages["dev"] = then
    assert json.loads(changed) == document
    assert [*json.loads(changed)["context"]] == ["mailroom", "last"]
    assert written(changed, "dev", then) == changed


@pytest.mark.parametrize(
    "text",
    [
        '{ "context": {\t"mailroom" : {"dev": {"a" : [ 1 ]}} } }',
        '{"context":{"mailroom":{"dev":{"a":[1]}}}}\r\n',
    ],
)
def test_a_section_that_says_the_same_leaves_every_character_as_it_is(text: str) -> None:
    assert written(text, "dev", {"a": [1]}) == text


def test_a_long_object_gets_a_line_for_each_of_its_members() -> None:
    long = {"first": "x" * 60, "second": ["y" * 60]}
    assert written('{"context": {"mailroom": {}}}', "dev", long) == (
        '{\n  "context": {\n    "mailroom": {\n      "dev": {\n        "first": "'
        + "x" * 60
        + '",\n        "second": ["'
        + "y" * 60
        + '"]\n      }\n    }\n  }\n}\n'
    )
