"""Every `mailroom` command that an alarm or the dashboard tells people to run is one that they can run."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from mailroom_ops.cli import app
from tests.support.ops.subcommands import subcommands
from tests.support.stacks.alarm import alarms
from tests.support.stacks.dashboard import name_of_stage, widgets
from tests.support.stacks.templates import Templates

COMMAND = typer.main.get_command(app)
TOKEN = re.compile(r"[\w./:=-]*\w")


def mentions(text: str) -> Iterator[str]:
    """Yield the words behind each `mailroom`, up to the punctuation that ends them."""
    for found in re.finditer(r"(?<![\w/-])mailroom ([^,;:.()`·]+)", text):
        yield found[1]


def parse(mention: str) -> dict[str, Any]:
    """Return the command's parameters. A word that is neither an option nor its value ends the command."""
    command: Any = COMMAND
    rest = TOKEN.findall(mention)
    while below := subcommands(command):
        assert {*rest[:1]} & {*below}, f"there is no mailroom {mention!r}"
        command = below[rest.pop(0)]
    flags = {name for each in command.params if getattr(each, "is_flag", False) for name in each.opts}
    given: list[str] = []
    while rest and rest[0].startswith("--"):
        take = 1 if rest[0] in flags else 2
        given, rest = [*given, *rest[:take]], rest[take:]
    try:
        parsed: dict[str, Any] = command.make_context(command.name, given).params
    except Exception as error:
        raise AssertionError(f"mailroom {mention}: {error}") from error
    return parsed


def test_each_command_in_an_alarm_s_description_is_a_valid_command(each_stage: Templates) -> None:
    found = [mention for each in alarms(each_stage) for mention in mentions(each.description)]
    assert len(found) > 50
    stages = {parse(mention).get("stage") for mention in {*found} if not mention.startswith("docs ")}
    assert stages == {name_of_stage(each_stage)}


def test_each_command_on_the_dashboard_is_a_valid_command(each_stage: Templates) -> None:
    shown = [each["properties"]["markdown"] for each in widgets(each_stage, "text")]
    commands = [span for text in shown for span in re.findall(r"`(mailroom [^`]+)`", text)]
    assert len(commands) >= 3
    for each in commands:
        (mention,) = mentions(each)
        assert parse(mention)["stage"] == name_of_stage(each_stage)


@pytest.mark.parametrize(
    "wrong",
    [
        "status --stage dev (of the message)",
        "campaign status --stage dev",
        "campaign --stage dev",
        "replays --stage dev",
        "doctor --stages dev",
        "failures --stage dev --since",
    ],
)
def test_the_check_of_alarm_descriptions_finds_an_invalid_command(wrong: str) -> None:
    with pytest.raises(AssertionError):
        parse(next(mentions(f"Next: mailroom {wrong}")))
