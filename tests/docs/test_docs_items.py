"""Every item that the pages for producers put, by the AWS CLI, boto3 or the client, is one that dispatch
and the channel's schema take."""

import ast
import itertools
import json
import shlex
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from boto3.dynamodb.types import TypeDeserializer
from jsonschema import Draft202012Validator  # type: ignore[import-untyped] # it has no py.typed

from mailroom import outbox
from mailroom.channels.contracts import CONTRACTS
from mailroom.mailbox import MailboxWriter
from mailroom.message.message import parse
from mailroom_ops.setup.schema import schema_of
from tests.support.docs_pages import Page

MESSAGES = Page("docs/reference/messages.md")
"""The contract of each channel."""
TRANSACTIONS = Page("docs/how-to/send-in-a-transaction.md")
PAGES = [
    Page("README.md"),
    MESSAGES,
    Page("docs/how-to/send-from-your-app.md"),
    Page("docs/how-to/run-locally.md"),
]
Item = dict[str, Any]


def _typed(page: Page) -> Iterator[Item]:
    """Yield the items in shell commands, whose attributes name their types."""
    for block in page.blocks("sh"):
        words = shlex.split(block.text.replace("\\\n", " "), comments=True)
        for option, value in itertools.pairwise(words):
            if option == "--item":
                typed = json.loads(value)
                yield {name: TypeDeserializer().deserialize(each) for name, each in typed.items()}


def _plain(page: Page) -> Iterator[Item]:
    """Yield the items in Python, including those to which a second line adds attributes. A condition of
    `unless` also has an id, and a status."""
    for block in page.blocks("python"):
        named: dict[str, Item] = {}
        for node in ast.walk(ast.parse(block.text)):
            if isinstance(node, ast.Assign | ast.AugAssign) and isinstance(node.value, ast.Dict):
                (target,) = node.targets if isinstance(node, ast.Assign) else [node.target]
                named.setdefault(ast.unparse(target), {}).update(ast.literal_eval(node.value))
            elif isinstance(node, ast.Call):
                dicts = [each for each in (*node.args, *_values(node)) if isinstance(each, ast.Dict)]
                yield from map(ast.literal_eval, dicts)
        yield from (item for item in named.values() if "status" not in item)


def _values(call: ast.Call) -> Iterator[ast.expr]:
    return (keyword.value for keyword in call.keywords)


@pytest.mark.parametrize(
    "item",
    [item for page in PAGES for item in (*_typed(page), *_plain(page))],
    ids=lambda item: f"{item['event_type']}-{item['id']}",
)
def test_each_message_item_in_the_documentation_passes_dispatch_and_the_schema_of_its_channel(
    item: Item,
) -> None:
    assert parse(item, CONTRACTS).key.id == item["id"]
    Draft202012Validator(schema_of(item["event_type"])).validate(item)


@pytest.mark.parametrize("items", [_typed, _plain])
def test_the_page_about_messages_has_a_shell_and_a_python_example_of_each_channel(items: Any) -> None:
    assert {item["event_type"] for item in items(MESSAGES)} == set(CONTRACTS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path)
def test_each_page_for_producers_has_an_example_of_a_message_item(page: Page) -> None:
    assert [*_typed(page), *_plain(page)]


def test_the_page_about_transactions_creates_the_outbox_table_as_mailroom_defines_it() -> None:
    assert outbox.TABLE.strip() in [each.text.strip() for each in TRANSACTIONS.blocks("sql")]


@pytest.mark.parametrize("language", ["typescript", "java"])
def test_a_typescript_or_java_example_has_the_table_and_the_put_condition_of_the_python_client(
    language: str,
) -> None:
    (block,) = TRANSACTIONS.blocks(language)
    put = MailboxWriter(boto3.client("dynamodb"), "mailroom-dev-mailbox").entry({"id": "order"})["Put"]
    for value in (put["TableName"], put["ConditionExpression"], put["ReturnValuesOnConditionCheckFailure"]):
        assert value in block.text
