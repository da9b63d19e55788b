"""Every command answers programs as JSON, and shows how it is used."""

from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from mailroom_ops import cli
from tests.support.ops.subcommands import subcommands

NO_ANSWER = {
    *("console", "schema", "up", "down", "inbox"),
    *("synth", "diff", "deploy", "destroy", "policy", "cdk"),
    *("docs", "update", "init"),
}
"""Commands without a schema of their answer. A server prints none. `schema` prints a JSON schema, the CDK's
command line its own text, `inbox` a message at a URL, `docs` pages, and `init` writes cdk.json."""


def typed_commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Yield every command as a person types it."""
    for name, each in subcommands(group).items():
        if subcommands(each):
            yield from typed_commands(each, (*path, name))
        else:
            yield " ".join((*path, name)), each


COMMANDS = dict(typed_commands(typer.main.get_command(cli.app)))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_example_in_its_help(name: str) -> None:
    _, _, example = COMMANDS[name].help.rpartition("Example: ")
    assert f"mailroom {name} " in f"{example} "


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - NO_ANSWER))
def test_every_command_that_returns_data_has_the_option_json(name: str) -> None:
    options = [option for each in COMMANDS[name].params for option in each.opts]
    assert "--json" in options


def test_mailroom_has_at_most_48_commands() -> None:
    """A further command has to replace one, or to be its option."""
    assert len(COMMANDS) <= 48


def test_the_list_of_commands_fits_one_screen() -> None:
    output = CliRunner().invoke(cli.app, ["--help"], env={"COLUMNS": "80"}).output
    assert len(output.strip("\n").splitlines()) <= 45, output
    assert "…" not in output
