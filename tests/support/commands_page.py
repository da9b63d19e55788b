"""The page docs/reference/commands.md, which has the output of `--help` of each command.

`make schema` writes it.
"""

import re
from collections.abc import Iterator
from typing import Any

import typer

from mailroom_ops.cli import PANELS, app
from tests.support import ROOT
from tests.support.ops.subcommands import subcommands

PAGE = ROOT / "docs" / "reference" / "commands.md"
HEAD = """\
# Commands

Made by `make schema` of what `--help` prints. Each command takes `--help`. Credentials and region
(`AWS_REGION`) come from the environment, as for the AWS CLI.
"""


def whole_page() -> str:
    """Return the page: the commands in the order and under the panels of `mailroom --help`."""
    commands = subcommands(typer.main.get_command(app))
    parts = [HEAD]
    for panel, names in PANELS.items():
        parts.append(f"## {panel}\n")
        for name in names:
            parts += _described(f"mailroom {name}", commands[name])
    return "\n".join(parts)


def _described(name: str, command: Any) -> Iterator[str]:
    """Yield the parts of the page about a command, or about a group and each command in it."""
    yield f"### {name}\n"
    if below := subcommands(command):
        yield f"{command.help}\n"
        for word, each in below.items():
            yield from _described(f"{name} {word}", each)
        return
    context = command.make_context(name, [], resilient_parsing=True)
    yield f"`{' '.join((name, *command.collect_usage_pieces(context)))}`\n"
    yield f"{_as_markdown(command.help)}\n"
    if records := [record for each in command.params if (record := each.get_help_record(context))]:
        rows = (f"| `{_cell(option)}` | {_cell(text)} |\n" for option, text in records)
        yield f"| argument or option | |\n|---|---|\n{''.join(rows)}"


def _as_markdown(text: str) -> str:
    """Return a docstring as Markdown, each example on a line of its own."""
    return re.sub(r"^Example: (.+)$", r"- `\1`", text, flags=re.MULTILINE)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(whole_page())
