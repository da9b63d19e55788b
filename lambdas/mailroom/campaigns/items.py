"""One person of an audience as an item of the mailbox."""

from collections.abc import Mapping
from typing import Any

from msgspec import structs

from mailroom.campaigns.audience import Recipient
from mailroom.campaigns.bodies import Chunk
from mailroom.campaigns.definition import Definition
from mailroom.campaigns.plain_values import plain
from mailroom.campaigns.run import message_id
from mailroom.clock import epoch, iso
from mailroom.errors import Invalid
from mailroom.message.message import Message

Item = dict[str, Any]

ADDRESS = frozenset({"to", "email", "platform"})
"""Attributes of a message that an audience may give. Its other columns are variables: one that is called as a
further attribute (`bcc`, `headers`, `attachments`) would mean more than whoever wrote the file may decide."""
COPIES = frozenset({"cc", "bcc"})


class Items:
    """Makes items, by the channels' contracts."""

    def __init__(self, contracts: Mapping[str, type[Message]]) -> None:
        self._attributes = {name: _names(contract) for name, contract in contracts.items()}

    def item(
        self, definition: Definition, chunk: Chunk, recipient: Recipient, composed: Mapping[str, Any]
    ) -> Item:
        """The item: what the audience says, then the campaign's settings, then what its module composed, and
        last what makes it this campaign's, which nobody else decides. Raises Invalid for what a module may
        not say."""
        kept = self._attributes[definition.channel] - ADDRESS
        said = {name: value for name, value in recipient.attributes.items() if name not in kept}
        own: Item = {
            "id": message_id(chunk.campaign, chunk.run, recipient.key),
            "event_type": definition.channel,
            "lane": definition.lane,
        }
        if definition.topic is not None:
            own["topic"] = definition.topic
        if (expires := expiry(definition, chunk.scheduled_at)) is not None:
            own["expires_at"] = iso(expires)
        return {**said, **definition.attributes, **_said(definition, composed), **own}


def _said(definition: Definition, composed: Mapping[str, Any]) -> Item:
    """What a module composed, as JSON has it: times as ISO 8601, UUIDs as text."""
    where = f"{definition.module}: compose"
    if not isinstance(composed, Mapping):
        raise Invalid(where, f"returned {type(composed).__name__} for one; use a mapping of attributes")
    if definition.topic is not None and (others := COPIES & composed.keys()):
        # Then there would be no link for opting out: it would be both recipients'.
        raise Invalid(where, f"set {' and '.join(sorted(others))}; a mail with a topic goes to one alone")
    said: Item = {}
    for name, value in composed.items():
        try:
            said[name] = plain(value)
        except ValueError as fault:
            raise Invalid(where, f"attribute {name:.60} {fault}") from None
    return said


def expiry(definition: Definition, scheduled_at: str) -> float | None:
    """When the messages of a run of that time are sent no more, in epoch seconds; None: they always are."""
    if definition.expires_after_hours is None:
        return None
    return epoch(scheduled_at) + definition.expires_after_hours * 3600


def _names(contract: type[Message]) -> frozenset[str]:
    return frozenset(each.encode_name for each in structs.fields(contract))
