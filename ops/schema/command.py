"""`schema`: what producers may put, and what commands answer, as JSON Schema."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from ops.schema import contracts


def schema(
    channel: Annotated[
        str | None, typer.Argument(help="The channel, which is the item's event_type.")
    ] = None,
    *,
    command: Annotated[
        str | None, typer.Option(help='Of a command\'s --json instead, as "campaign status".')
    ] = None,
    output: Annotated[Path | None, typer.Option(help="Write it to this file instead of printing it.")] = None,
    all_: Annotated[
        Path | None, typer.Option("--all-commands", help="Write those of all commands into this folder.")
    ] = None,
) -> None:
    """Print the JSON Schema of a mailbox item, or of a command's answer.

    Exit code 2: there is no such channel or command.

    Example: mailroom schema mail > mail.schema.json
    """
    if all_ is not None:
        _write_all(all_)
        return
    if (channel is None) == (command is None):
        raise typer.BadParameter("name a channel, or a command by --command.")
    try:
        text = written(contracts.schema_of(channel) if channel else _of_command(command or ""))
    except KeyError as error:
        raise typer.BadParameter(str(error.args[0])) from None
    if output is None:
        typer.echo(text, nl=False)
    else:
        output.write_text(text)


def written(document: dict[str, Any]) -> str:
    """A schema as its file holds it."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def file_of(command: str) -> str:
    """The name of the file that a command's schema is kept in."""
    return f"{command.replace(' ', '-')}.schema.json"


def _of_command(command: str) -> dict[str, Any]:
    # It knows every command's module, which the others need not wait for.
    from ops.answers import schema_of

    return schema_of(command)


def _write_all(folder: Path) -> None:
    from ops.answers import ANSWERS

    folder.mkdir(parents=True, exist_ok=True)
    for each in folder.glob("*.schema.json"):
        each.unlink()
    for command in ANSWERS:
        (folder / file_of(command)).write_text(written(_of_command(command)))
