"""Where each campaign's people come from."""

from typing import Any

from msgspec import Struct

from mailroom.aws import clients
from mailroom.campaigns.audience import Audience, Found, Page, Recipient
from mailroom.campaigns.audiences import audience_of
from mailroom.campaigns.databases import Databases
from mailroom.campaigns.definition import Definition, Module
from mailroom.campaigns.modules import Modules
from mailroom.campaigns.rows import Rows

KEY = "(key)"
"""What a key is called that stands in no column."""


class Sources:
    """The audiences of a bundle's campaigns, each made once a process."""

    def __init__(self, modules: Modules, databases: Databases) -> None:
        self._modules = modules
        self._databases = databases
        self._made: dict[str, Audience] = {}

    def __call__(self, definition: Definition) -> Audience:
        """A campaign's audience. Raises Invalid where its definition cannot be followed."""
        if definition.name not in self._made:
            self._made[definition.name] = self._make(definition)
        return self._made[definition.name]

    def _make(self, definition: Definition) -> Audience:
        if isinstance(definition.audience, Module):
            return _Own(self._modules, definition, definition.audience.columns)
        return audience_of(
            definition, databases=self._databases, s3=clients.s3(), dynamodb=clients.dynamodb()
        )


class _Own(Struct, frozen=True):
    """What the campaign's own module hands out."""

    modules: Modules
    definition: Definition
    columns: tuple[str, ...]

    def page(self, page: Page) -> Found:
        """Its people, held to the same as those of a file."""
        found = self.modules.recipients(self.definition, page)
        rows = Rows(KEY, self.columns)
        for at, each in enumerate(found.recipients, 1):
            rows.add(f"person {at} of a page", {**each.attributes, KEY: each.key})
        # The key is not among what they said of themselves.
        people = [Recipient(each.key, _without_key(each)) for each in rows.recipients]
        return Found(people, found.cursor, [*found.faults, *rows.faults])


def _without_key(recipient: Recipient) -> dict[str, Any]:
    return {name: value for name, value in recipient.attributes.items() if name != KEY}
