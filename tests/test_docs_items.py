"""Every item that the README puts, by the AWS CLI or by boto3, is one that dispatch takes."""

import ast
import itertools
import json
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
from boto3.dynamodb.types import TypeDeserializer

from mailroom.channels.contracts import CONTRACTS
from mailroom.message import parse
from tests.docs_pages import Page

README = Page("README.md")
Item = dict[str, Any]


def _typed() -> Iterator[Item]:
    """Those of the shell, whose attributes name their types."""
    for block in README.blocks("sh"):
        words = shlex.split(block.text.replace("\\\n", " "), comments=True)
        for option, value in itertools.pairwise(words):
            if option == "--item":
                typed = json.loads(value)
                yield {name: TypeDeserializer().deserialize(each) for name, each in typed.items()}


def _plain() -> Iterator[Item]:
    """Those of Python, also where a second line adds to what the first one names."""
    for block in README.blocks("python"):
        named: dict[str, Item] = {}
        for node in ast.walk(ast.parse(block.text)):
            if isinstance(node, ast.Assign | ast.AugAssign) and isinstance(node.value, ast.Dict):
                (target,) = node.targets if isinstance(node, ast.Assign) else [node.target]
                named.setdefault(ast.unparse(target), {}).update(ast.literal_eval(node.value))
            elif isinstance(node, ast.Call):
                dicts = [each for each in (*node.args, *_values(node)) if isinstance(each, ast.Dict)]
                yield from map(ast.literal_eval, dicts)
        yield from named.values()


def _values(call: ast.Call) -> Iterator[ast.expr]:
    return (keyword.value for keyword in call.keywords)


@pytest.mark.parametrize(
    "item", [*_typed(), *_plain()], ids=lambda item: f"{item['event_type']}-{item['id']}"
)
def test_an_item_of_the_readme_is_taken(item: Item) -> None:
    assert parse(item, CONTRACTS).key.id == item["id"]


@pytest.mark.parametrize("items", [_typed, _plain])
def test_each_channel_has_an_example_for_the_shell_and_one_for_python(items: Any) -> None:
    assert {item["event_type"] for item in items()} == set(CONTRACTS)
