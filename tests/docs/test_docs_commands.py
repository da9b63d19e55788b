"""Every command that the documentation gives is one that `mailroom` takes."""

import re
from collections.abc import Sequence
from typing import Any

import pytest
import typer

from mailroom_ops.cli import app
from tests.support import commands_page
from tests.support.docs_pages import Page, docs_pages
from tests.support.ops.subcommands import subcommands

PATHS = [page.path for page in docs_pages()]
NAMES = {"mailroom", ".venv/bin/mailroom"}
COMMAND = typer.main.get_command(app)


@pytest.mark.parametrize("path", PATHS)
def test_every_mailroom_command_in_a_code_block_of_the_documentation_is_valid(path: str) -> None:
    for words in Page(path).command_lines():
        if words and words[0] in NAMES:
            _parse(words[1:], path)


@pytest.mark.parametrize("path", PATHS)
def test_every_mailroom_command_in_the_prose_of_the_documentation_exists_with_its_options(path: str) -> None:
    for span in Page(path).spans():
        name, _, command = span.partition(" ")
        if name in NAMES and command:
            require_command(command, f"{path}: {span}")


def require_command(text: str, where: str) -> None:
    """Fail unless `mailroom` has a command with the options that a text names."""
    command, rest = _found(re.split(r" -- | \| ", text)[0].split(), where)
    known = {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
    named = {word.partition("=")[0].rstrip(".,") for word in rest if word.startswith("--")}
    assert named <= known | {"--help"}, where


def _found(words: Sequence[str], where: str) -> tuple[Any, list[str]]:
    """The command that `words` begin with, and those that are left."""
    command: Any = COMMAND
    rest = list(words)
    while rest and rest[0] not in {"--help", "--version"} and (below := subcommands(command)):
        name = rest.pop(0)
        assert name in below, f"{where}: there is no {name!r}"
        command = below[name]
    return command, rest


def _parse(words: Sequence[str], where: str) -> None:
    command, rest = _found(words, where)
    try:
        command.make_context(command.name, rest)
    except Exception as error:
        raise AssertionError(f"{where}: mailroom {' '.join(words)}: {error}") from error


def test_the_page_of_commands_equals_the_generated_help_of_every_mailroom_command() -> None:
    assert commands_page.PAGE.read_text() == commands_page.whole_page(), "run: make schema"
