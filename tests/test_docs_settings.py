"""Every setting that the documentation lists is one that there is."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from stacks.settings import Settings
from tests.docs_pages import Page

ROW = re.compile(r"^\| (?P<keys>`[^|]+) \| [^|]+ \| [^\n]+ \|$", re.M)
SCHEMA: dict[str, Any] = Settings.model_json_schema()


def _listed(path: str) -> Iterator[str]:
    """Whole keys: one that begins with a dot stands for its neighbour's last part."""
    table = Page(path).text.partition("| key | default | |\n")[2].partition("\n\n")[0]
    for row in ROW.finditer(table):
        before = ""
        for key in re.findall(r"`([^`]+)`", row["keys"]):
            before = before.rpartition(".")[0] + key if key.startswith(".") else key
            yield before


def _there(schema: dict[str, Any], parts: list[str]) -> bool:
    if "$ref" in schema:
        return _there(SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]], parts)
    if "anyOf" in schema:
        return any(_there(each, parts) for each in schema["anyOf"])
    if not parts:
        return True
    name, *rest = parts
    if name in schema.get("properties", {}):
        return _there(schema["properties"][name], rest)
    # A map: a name in angle brackets stands for any.
    by_name = schema.get("patternProperties", {}).items()
    named = [each for pattern, each in by_name if name.startswith("<") or re.search(pattern, name)]
    others = schema.get("additionalProperties")
    return any(_there(each, rest) for each in (*named, *([others] if isinstance(others, dict) else [])))


@pytest.mark.parametrize("path", ["README.md", "docs/settings.md"])
def test_every_setting_of_the_table_is_there(path: str) -> None:
    keys = list(_listed(path))
    assert len(keys) > 10
    assert [key for key in keys if not _there(SCHEMA, key.split("."))] == []


def test_what_everybody_sets_is_among_what_one_will_want_to_know() -> None:
    assert {key.split(".")[0] for key in _listed("README.md")} <= {
        key.split(".")[0] for key in _listed("docs/settings.md")
    }


@pytest.mark.parametrize("key", ["mail.sender", "channels.mail.lanes.bulk.shares", "retention"])
def test_a_key_that_there_is_not_would_be_seen(key: str) -> None:
    assert _there(SCHEMA, key.split(".")) == (key == "retention")
