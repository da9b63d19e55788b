"""`schema`: what producers may put, and what commands answer, as JSON Schema."""

import inspect
import json
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from mailroom.channels.contracts import CHOICES, CONTRACTS, OURS
from mailroom.message.message import MAX_ID_BYTES
from mailroom.outcomes import OutcomeEvent


def schema(
    channel: Annotated[
        str | None, typer.Argument(help="The channel, which is the item's event_type.")
    ] = None,
    *,
    command: Annotated[
        str | None, typer.Option(help='Print the schema of this command\'s --json, as "campaign status".')
    ] = None,
    event: Annotated[
        bool, typer.Option("--event", help="Print the schema of the detail of events on EventBridge.")
    ] = False,
    output: Annotated[Path | None, typer.Option(help="Write to this file instead of printing.")] = None,
    all_: Annotated[
        Path | None,
        typer.Option("--all-commands", help="Write the schemas of all commands into this folder."),
    ] = None,
) -> None:
    """Print the JSON Schema of a mailbox item, of a command's answer, or of an event.

    Exit code 2: there is no such channel or command.

    Example: mailroom schema mail > mail.schema.json
    """
    # It imports every command, for which the other commands need not wait.
    from ops import answers

    if all_ is not None:
        all_.mkdir(parents=True, exist_ok=True)
        for each in all_.glob("*.schema.json"):
            each.unlink()
        for name in answers.ANSWERS:
            (all_ / file_of(name)).write_text(written(answers.schema_of(name)))
        return
    if [channel is not None, command is not None, event].count(True) != 1:
        raise typer.BadParameter("name a channel, or a command with --command, or use --event.")
    try:
        if event:
            text = written(schema_of_event())
        else:
            text = written(schema_of(channel) if channel else answers.schema_of(command or ""))
    except KeyError as error:
        raise typer.BadParameter(str(error.args[0])) from None
    if output is None:
        typer.echo(text, nl=False)
    else:
        output.write_text(text)


def schema_of(channel: str) -> dict[str, Any]:
    """The JSON Schema of a channel's items. Raises KeyError with the channels there are."""
    if channel not in CONTRACTS:
        raise KeyError(f"no channel {channel!r}; there are: {', '.join(CONTRACTS)}")
    contract = CONTRACTS[channel]
    document = msgspec.json.schema(contract)
    definitions: dict[str, Any] = document["$defs"]
    item: dict[str, Any] = definitions.pop(contract.__name__)
    for name in OURS:
        del item["properties"][name]
    item["properties"]["event_type"] = {"const": channel}
    item["properties"]["id"] |= {"minLength": 1, "maxLength": MAX_ID_BYTES}
    item["description"] = inspect.cleandoc(item["description"])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **item,
        **({"allOf": CHOICES[channel]} if channel in CHOICES else {}),
        "additionalProperties": True,  # a template's variables, for one
        "$defs": definitions,
    }


def schema_of_event() -> dict[str, Any]:
    """The JSON Schema of the `detail` of an event."""
    (document,), definitions = msgspec.json.schema_components([OutcomeEvent])
    detail = definitions.pop(document["$ref"].rpartition("/")[2])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **detail,
        "description": inspect.cleandoc(detail["description"]),
    }


def written(document: dict[str, Any]) -> str:
    """A schema as its file holds it."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def file_of(command: str) -> str:
    """The name of the file that a command's schema is kept in."""
    return f"{command.replace(' ', '-')}.schema.json"
