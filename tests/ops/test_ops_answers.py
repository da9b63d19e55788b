"""Every command answers programs, by a schema that is kept beside the docs, and shows how it is used."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from jsonschema import Draft202012Validator  # type: ignore[import-untyped] # it has no py.typed
from typer.testing import CliRunner

from local.stage.workspace import REPOSITORY
from ops import cli
from ops.answers import ANSWERS, schema_of
from ops.schema import file_of, schema, written
from tests.support.ops.subcommands import subcommands

KEPT = REPOSITORY / "docs" / "cli"
NO_ANSWER = {"console", "schema"}
"""A server has none. What `schema` prints is JSON, and its own schema's is the standard's."""

app = typer.Typer()
app.command()(schema)


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Every command as it is typed."""
    for name, each in subcommands(group).items():
        if subcommands(each):
            yield from commands(each, (*path, name))
        else:
            yield " ".join((*path, name)), each


COMMANDS = dict(commands(typer.main.get_command(cli.app)))


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, arguments)
    return result.exit_code, result.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_example_in_its_help(name: str) -> None:
    _, _, example = COMMANDS[name].help.rpartition("Example: ")
    assert f"mailroom {name} " in f"{example} "


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - NO_ANSWER))
def test_every_command_can_print_json_and_has_a_schema_of_it(name: str) -> None:
    options = [option for each in COMMANDS[name].params for option in each.opts]
    assert "--json" in options
    assert name in ANSWERS


def test_no_answer_is_kept_of_a_command_that_there_is_not() -> None:
    assert not ANSWERS.keys() - COMMANDS.keys()


@pytest.mark.parametrize("name", ANSWERS)
def test_the_schema_of_each_answer_is_valid_and_kept(name: str) -> None:
    document = schema_of(name)
    Draft202012Validator.check_schema(document)
    assert (KEPT / file_of(name)).read_text() == written(document), "run `make schema` and commit the file"
    code, printed = run("--command", name)
    assert (code, printed) == (0, written(document))


def test_nothing_else_is_kept() -> None:
    assert {each.name for each in KEPT.iterdir()} == {file_of(name) for name in ANSWERS}


def test_all_schemas_are_written_into_a_folder(tmp_path: Path) -> None:
    (tmp_path / "old.schema.json").write_text("{}")
    assert run("--all-commands", str(tmp_path)) == (0, "")
    assert {each.name for each in tmp_path.iterdir()} == {file_of(name) for name in ANSWERS}


@pytest.mark.parametrize(
    "arguments", [(), ("mail", "--command", "plan"), ("--command", "pigeon"), ("pigeon",)]
)
def test_one_channel_or_one_command_has_to_be_named(arguments: tuple[str, ...]) -> None:
    assert run(*arguments)[0] == 2


def test_a_channels_schema_is_printed_as_before() -> None:
    code, printed = run("mail")
    assert (code, json.loads(printed)["properties"]["event_type"]) == (0, {"const": "mail"})
