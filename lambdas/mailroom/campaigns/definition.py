"""Definitions of campaigns: entries in the bundle's file `campaigns.json`, and the campaigns' own Python
modules.

The stack has checked the entries against the stage's settings before it wrote the file, so they are only read
here.
"""

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
from msgspec import Struct

from mailroom.campaigns.audience import Found, Page, Recipients
from mailroom.errors import Invalid, quantity

PAGE_SIZE = 1000
RECIPIENTS_PER_MESSAGE = 50
MAX_PAGES = 100_000
LANE = "bulk"
"""Lane of the messages of every campaign, so that they never delay other messages."""


class Postgresql(Struct, frozen=True, tag_field="kind", tag="postgresql"):
    """Audience of the rows of a `query` to the stage's database with the name `database`, ordered by the
    column `key`."""

    database: str
    query: str
    key: str
    columns: tuple[str, ...] = ()
    """Columns whose values must not be empty."""


class File(Struct, frozen=True, tag_field="kind", tag="file"):
    """Audience of the lines of a file at `location` (s3://bucket/key). If the location ends in .jsonl, each
    line is a JSON object. If it ends in .csv, the file is CSV with a header."""

    location: str
    key: str
    columns: tuple[str, ...] = ()
    map: dict[str, str] = {}
    """Names of attributes by the column of the file, such as `{"First Name": "first_name"}`."""


class Module(Struct, frozen=True, tag_field="kind", tag="module"):
    """Audience of the people that the function `recipients(page)` in the campaign's own module returns."""

    columns: tuple[str, ...] = ()


AudienceDefinition = Postgresql | File | Module


class Unless(Struct, frozen=True):
    """Condition on another message to the same person: if that message has one of the statuses, the person's
    message is not sent."""

    column: str
    """Column of the audience with the id of the other message. If the value is empty, the person's message is
    sent without a condition."""
    event_type: str
    status: tuple[str, ...]


class Definition(Struct, frozen=True):
    """Definition of a campaign."""

    name: str
    channel: str
    audience: AudienceDefinition
    topic: str | None = None
    attributes: dict[str, Any] = {}
    """Attributes of each message, such as `template` and `from`. Attributes from the campaign's module
    override them."""
    lane: str = LANE
    page_size: int = PAGE_SIZE
    recipients_per_message: int = RECIPIENTS_PER_MESSAGE
    """Maximum number of people in a message of the audience queue, who are composed and retried together."""
    max_pages: int = MAX_PAGES
    expires_after_hours: float | None = None
    window: dict[str, str] | None = None
    """Hours in which the messages may be sent."""
    unless: Unless | None = None
    module: str | None = None
    """Path of the campaign's own Python module, relative to the bundle's root."""


def read(path: Path) -> dict[str, Definition]:
    """Return the campaigns in a bundle's file, by name. Raises msgspec.ValidationError and OSError."""
    return msgspec.json.decode(path.read_bytes(), type=dict[str, Definition])


def deployed(campaigns: Mapping[str, Definition], name: str) -> Definition:
    """Return the campaign with this name. Raises Invalid, whose text lists the deployed campaigns."""
    if name not in campaigns:
        raise Invalid("campaign", f"{name!r:.60} is not deployed; use one of: {', '.join(campaigns)}")
    return campaigns[name]


Composed = Mapping[str, Mapping[str, Any]]
"""Further attributes of messages, by the recipient's key. A person without an entry gets no message."""


class Modules(Struct, frozen=True):
    """Loads and calls the modules of a bundle's campaigns. Errors of a module are not caught."""

    root: Path = Path()
    loaded: dict[str, ModuleType] = {}

    def recipients(self, definition: Definition, page: Page) -> Found:
        """Return a page of the campaign's own audience. Raises Invalid if the module lacks the function
        `recipients`, or if the function does not return a Found."""
        module = self._module(definition)
        function = getattr(module, "recipients", None)
        if function is None:
            raise Invalid(
                "audience.kind", f"is module, but {definition.module} has no recipients(page); add it"
            )
        answer = function(page)
        if not isinstance(answer, Found):
            raise Invalid(f"{definition.module}: recipients", f"returned {type(answer).__name__}; use Found")
        return answer

    def compose(self, definition: Definition, recipients: Recipients) -> Composed | None:
        """Return the attributes that the campaign's module composes for these people, or None if the campaign
        lacks a function `compose`. Raises Invalid."""
        function = getattr(self._module(definition), "compose", None) if definition.module else None
        if function is None:
            return None
        composed = function(recipients)
        field = f"{definition.module}: compose"
        if not isinstance(composed, Mapping):
            raise Invalid(field, f"returned {type(composed).__name__}; use a mapping by the recipients' keys")
        # Unknown keys are an error: a module that confuses 7 with "7" would otherwise silently leave out all
        # people.
        unknown = composed.keys() - set(recipients.keys)
        if unknown:
            raise Invalid(
                field, f"returned {quantity(len(unknown), 'unknown key')}; use the keys of the recipients"
            )
        return composed

    def _module(self, definition: Definition) -> ModuleType:
        path = definition.module
        if path is None:
            raise Invalid("audience.kind", "is module, but the campaign's folder has no campaign.py; add it")
        if path not in self.loaded:
            name = "campaign_" + definition.name.replace("-", "_")
            spec = importlib.util.spec_from_file_location(name, self.root / path)
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            self.loaded[path] = module
        return self.loaded[path]
