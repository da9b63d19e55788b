"""The project's folder of templates: lists the templates, renders their examples, and words their faults."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from mailroom.channels.contracts import contracts_of
from mailroom.channels.preview import Preview, Previews
from mailroom.content.engine import TemplateFault
from mailroom.content.payloads import Payloads
from mailroom.content.templates import EXAMPLES, FILES, TOP, canonical, engine_of
from mailroom.errors import Invalid, Malformed
from mailroom.message.message import parse

Item = dict[str, Any]
_FIELDS: Mapping[str, str] = {"mail": "subject", "sms": "template"}
"""Field of an error about the first part of a template, by channel."""
TO: Mapping[str, str] = {"mail": "ada@example.com", "sms": "+16175551234"}
"""Default recipients of examples, by channel."""


class TemplateName(Struct, frozen=True, order=True):
    """Name of a template of a channel."""

    channel: str
    name: str

    @property
    def path(self) -> str:
        """Name of the template's folder, as in mail/welcome."""
        return f"{self.channel}/{self.name}"


class Folder:
    """The templates below `root`, with a folder for each channel; `published` reads published versions."""

    def __init__(self, root: Path, published: Payloads | None = None) -> None:
        self.root = root
        self.engines = {channel: engine_of((root / channel).absolute()) for channel in TO}
        """Engines by channel."""
        # Telephone numbers without a country code in examples are US numbers.
        self._contracts = contracts_of("US")
        self._previews = Previews(root.absolute(), mail_senders=(), published=published)

    def all(self) -> list[TemplateName]:
        """Return all templates, sorted. Folders whose names begin with _ are left out: they have files that
        several templates use."""
        files = {channel: self.root.glob(f"{channel}/[!_]*/{file}") for channel, file in TOP.items()}
        return sorted(TemplateName(channel, path.parent.name) for channel in files for path in files[channel])

    def example_files(self, template: TemplateName) -> list[Path]:
        """Return the files of a template's examples."""
        return sorted((self.root / template.path / EXAMPLES).glob("*.json"))

    def languages(self, template: TemplateName) -> list[str]:
        """Return the languages of a template besides the default one."""
        folders = (self.root / template.path).glob(f"*/{TOP[template.channel]}")
        return sorted(path.parent.name for path in folders)

    def item(self, template: TemplateName, attributes: Mapping[str, Any], language: str = "") -> Item:
        """Return an item for a template with these attributes, with an example id and, if the attributes do
        not have one, an example recipient. A `language` overrides the attribute `locale`."""
        identity = {"id": "example", "event_type": template.channel, "template": template.name}
        to = {} if {"to", "email"} & attributes.keys() else {"to": TO[template.channel]}
        locale = {"locale": language} if language else {}
        return {**identity, **to, **attributes, **locale}

    def look(self, item: Mapping[str, Any]) -> Preview:
        """Render an item like the sender. Raises Invalid and Malformed."""
        return self._previews.look(parse(item, self._contracts))

    def path(self, channel: str, name: str) -> str:
        """Return the path of a file in the project from its name in the channel's folder."""
        return f"{self.root.name}/{channel}/{name}"

    def part(self, template: TemplateName, item: Item, file: str) -> str:
        """Return the name of a template's file in the language that the item selects."""
        locale = f"{canonical(item.get('locale') or '')}-"
        fitting = [language for language in self.languages(template) if locale.startswith(f"{language}-")]
        return Path(template.name, max(fitting, default=""), file).as_posix()

    def incomplete(self, template: TemplateName) -> Iterator[str]:
        """Yield sentences about languages that are never selected, or that lack a part."""
        folder = self.root / template.path
        parts = [name for name in FILES if (folder / name).exists()]
        for language in self.languages(template):
            path = self.path(template.channel, f"{template.name}/{language}")
            if language != canonical(language):
                yield f"{path}: is never selected; rename it to {canonical(language)}"
            for file in parts:
                if not (folder / language / file).exists():
                    yield f"{path}/{file}: is missing; each language needs all parts"

    def sentence_of(self, fault: Invalid | Malformed, template: TemplateName, item: Item) -> str:
        """Return a sentence about a fault of an item of the template. Files are named by their paths in the
        project."""
        if isinstance(fault, TemplateFault):
            sentence = fault.sentence.replace(f"; {fault.place} ", "; this line ")
            return self.path(template.channel, sentence)
        if not isinstance(fault, Invalid) or fault.field != _FIELDS[template.channel]:
            return f"{fault}"
        part, problem = self.part(template, item, TOP[template.channel]), fault.problem
        variables = self.engines[template.channel].variables(part)
        # A text with a line break has an escape sequence in its representation.
        if "line break" in problem and not re.search(r"\\[nrux]", repr([*map(item.get, variables)])):
            problem = "has several lines; a subject is one line, so join them"
        return f"{self.path(template.channel, part)}: {problem}"
