"""Every command of the AWS CLI that the documentation gives is one that there is, with its options."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import pytest
from botocore import xform_name
from botocore.exceptions import UnknownServiceError
from botocore.session import Session

from tests.support.docs_pages import Page, docs_pages

PATHS = [page.path for page in docs_pages()]
ONLY_IN_THE_CLI = {("logs", "tail")}
"""Commands of the CLI besides the operations of services."""
OTHER_NAMES = {"s3api": "s3"}
"""Names of services in botocore that differ from those in the CLI."""
EVERYWHERE = {"query", "output", "region", "profile", "endpoint-url"}
_WAIT = "wait"
"""The command takes the name of a waiter as a word, not as an option."""
COMMAND = re.compile(r"\baws (?P<service>[a-z0-9-]+) (?P<operation>[a-z0-9-]+)(?P<rest>[^\n|;)]*)")
SESSION = Session()
READ_FIRST = (
    *("README.md", "docs/tutorial/first-stage.md", "docs/how-to/run-locally.md"),
    *("docs/how-to/deploy-update-go-back.md", "docs/how-to/operate.md"),
)
"""Pages at which people begin, and that have a command of the AWS CLI, or link to pages that have some."""


@dataclass(frozen=True)
class Command:
    """A command of the CLI, with the names of the options in its line."""

    service: str
    operation: str
    options: frozenset[str]


def _commands(page: Page) -> Iterator[Command]:
    texts = [block.text.replace("\\\n", " ") for block in page.blocks("sh")]
    texts += [span for span in page.spans() if span.startswith("aws ")]
    for text in texts:
        for found in COMMAND.finditer(text):
            options = frozenset(re.findall(r" --([a-z-]+)", found["rest"]))
            yield Command(found["service"], found["operation"], options)


@cache
def _operations(service: str) -> dict[str, set[str]]:
    """A service's operations with their options, in the CLI's spelling."""
    model = SESSION.get_service_model(OTHER_NAMES.get(service, service))
    found = {}
    for name in model.operation_names:
        shape = model.operation_model(name).input_shape
        members = shape.members if shape else {}
        found[xform_name(name, "-")] = {xform_name(member, "-") for member in members}
    return found


def _fault(command: Command) -> str:
    """Return the fault of a command, or an empty text."""
    if (command.service, command.operation) in ONLY_IN_THE_CLI or command.operation == _WAIT:
        return ""
    try:
        operations = _operations(command.service)
    except UnknownServiceError:
        return f"there is no service {command.service}"
    if command.operation not in operations:
        return f"{command.service} has no {command.operation}"
    taken = operations[command.operation] | EVERYWHERE
    unknown = {
        name for name in command.options if name not in taken and name.removeprefix("no-") not in taken
    }
    return f"{command.operation} takes no {', '.join(sorted(unknown))}" if unknown else ""


@pytest.mark.parametrize("path", PATHS)
def test_every_aws_command_that_a_documentation_page_names_exists_with_its_options(path: str) -> None:
    faults = {fault for command in _commands(Page(path)) if (fault := _fault(command))}
    assert faults == set()


def test_the_check_of_the_documentation_finds_aws_commands_in_code_blocks_and_in_prose() -> None:
    found = {(command.service, command.operation) for page in docs_pages() for command in _commands(page)}
    assert len(found) > 20
    assert {("cloudwatch", "set-alarm-state"), ("cloudformation", "delete-stack")} <= found


@pytest.mark.parametrize(
    ("command", "fault"),
    [
        (Command("sqs", "send", frozenset()), "sqs has no send"),
        (Command("mail", "send", frozenset()), "there is no service mail"),
        (Command("sqs", "get-queue-url", frozenset({"queue"})), "get-queue-url takes no queue"),
    ],
)
def test_the_check_of_the_documentation_finds_an_unknown_command_or_option(
    command: Command, fault: str
) -> None:
    assert _fault(command) == fault


@pytest.mark.parametrize("path", READ_FIRST)
def test_each_page_for_beginners_names_version_2_of_the_aws_cli_before_its_first_aws_command(
    path: str,
) -> None:
    text = " ".join(Page(path).text.split())
    before = re.split(r"(?<!\w)aws [a-z0-9]+ [a-z]+-", text, maxsplit=1)[0]
    assert "version 2 of the AWS CLI" in before
