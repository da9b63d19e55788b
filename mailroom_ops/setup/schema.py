"""The command `schema`: the contracts of mailbox items and events as JSON Schema."""

import inspect
import json
from typing import Annotated, Any

import msgspec
import typer

from mailroom.channels.contracts import CHANNELS, CONTRACTS
from mailroom.message.message import MAX_ID_BYTES, OURS, CampaignStart
from mailroom.outcomes import OutcomeEvent


def schema(
    channel: Annotated[
        str | None, typer.Argument(help="The channel, which is the item's event_type.")
    ] = None,
    *,
    event: Annotated[
        bool, typer.Option("--event", help="Print the schema of the field detail of events on EventBridge.")
    ] = False,
) -> None:
    """Print the JSON Schema of an item or an event.

    `mailroom docs openapi.json` prints the description of the HTTP API.

    Exit code 2: the channel is unknown.

    Example: mailroom schema mail > mail.schema.json
    """
    if (channel is not None) == event:
        raise typer.BadParameter("name a channel or use --event, but not both.")
    if channel is not None and channel not in CONTRACTS:
        raise typer.BadParameter(f"no channel {channel!r}; there are: {', '.join(CONTRACTS)}")
    document = schema_of_event() if channel is None else schema_of(channel)
    typer.echo(json.dumps(document, indent=2, ensure_ascii=False))


def schema_of(channel: str) -> dict[str, Any]:
    """Return the JSON Schema of a channel's items."""
    contract = CONTRACTS[channel]
    document = msgspec.json.schema(contract)
    definitions: dict[str, Any] = document["$defs"]
    item: dict[str, Any] = definitions.pop(contract.__name__)
    for name in OURS:
        del item["properties"][name]
    del definitions[CampaignStart.__name__]
    item["properties"]["event_type"] = {"const": channel}
    item["properties"]["id"] |= {"minLength": 1, "maxLength": MAX_ID_BYTES}
    for part in (item, *definitions.values()):
        part["description"] = inspect.cleandoc(part["description"])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **item,
        **({"allOf": CHANNELS[channel].choices} if CHANNELS[channel].choices else {}),
        "additionalProperties": True,  # such as a template's variables
        "$defs": definitions,
    }


def schema_of_event() -> dict[str, Any]:
    """Return the JSON Schema of the `detail` of an event."""
    (document,), definitions = msgspec.json.schema_components([OutcomeEvent])
    detail = definitions.pop(document["$ref"].rpartition("/")[2])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **detail,
        "description": inspect.cleandoc(detail["description"]),
        "$defs": definitions,
    }
