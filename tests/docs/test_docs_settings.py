"""Every setting that the documentation lists is one that there is."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from stacks.settings.stage import Settings
from tests.support.docs_pages import Page

PAGE = Page("docs/settings.md")
HEAD = "| key | default | |\n"
WHAT_EVERYBODY_SETS, WHAT_SOME_SET = PAGE.text.split(HEAD)[1:]
ROW = re.compile(r"^\| (?P<keys>`[^|]+) \| [^|]+ \| [^\n]+ \|$", re.M)
SCHEMA: dict[str, Any] = Settings.model_json_schema()
SECTIONS = "|".join(SCHEMA["properties"])


def _listed(table: str) -> Iterator[str]:
    """Whole keys: one that begins with a dot stands for its neighbour's last part."""
    for row in ROW.finditer(table.partition("\n\n")[0]):
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


@pytest.mark.parametrize("table", [WHAT_EVERYBODY_SETS, WHAT_SOME_SET], ids=["everybody", "some"])
def test_every_setting_of_the_table_is_there(table: str) -> None:
    keys = list(_listed(table))
    assert len(keys) > 10
    assert [key for key in keys if not _there(SCHEMA, key.split("."))] == []


def test_no_setting_is_listed_twice() -> None:
    listed = [*_listed(WHAT_EVERYBODY_SETS), *_listed(WHAT_SOME_SET)]
    assert len(listed) == len(set(listed))


def test_the_settings_that_the_readme_names_are_there_and_among_those_that_the_page_lists() -> None:
    named = {span for span in Page("README.md").spans() if re.fullmatch(rf"({SECTIONS})(\.\w+)+", span)}
    assert {"mail.senders", "monitoring.emails", "channels.mail.on_unknown"} <= named
    assert [key for key in named if not _there(SCHEMA, key.split("."))] == []
    listed = {key.split(".")[0] for key in (*_listed(WHAT_EVERYBODY_SETS), *_listed(WHAT_SOME_SET))}
    assert {key.split(".")[0] for key in named} <= listed


@pytest.mark.parametrize("key", ["mail.sender", "channels.mail.lanes.bulk.shares", "retention"])
def test_a_key_that_there_is_not_would_be_seen(key: str) -> None:
    assert _there(SCHEMA, key.split(".")) == (key == "retention")
