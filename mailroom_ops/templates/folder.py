"""The project's folder of templates: lists the templates, renders their examples, and reports faults."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from mailroom.channels.contracts import contracts_of
from mailroom.channels.preview import Preview, Previews
from mailroom.content.engine import Part, TemplateFault
from mailroom.content.payloads import Payloads
from mailroom.content.templates import EXAMPLES, FILES, TOP, Version, canonical, engine_of
from mailroom.errors import Invalid, Malformed
from mailroom.message.message import parse
from mailroom_ops.messages.items import read_item
from mailroom_ops.shared.screen import Refused

Item = dict[str, Any]
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


def named(templates: Sequence[TemplateName], name: str, channel: str | None, place: str) -> TemplateName:
    """Return the template with a name. Raises Refused if the template does not exist, or if two channels have
    one and `channel` is None. `place` names the folder or stage in the error."""
    matches = [
        template for template in templates if template.name == name and channel in (None, template.channel)
    ]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise Refused(
            f"{name} is a template of {matches[0].channel} and {matches[1].channel}; use --channel."
        )
    paths = ", ".join(template.path for template in templates) or "none"
    raise Refused(f"There is no template {name!r:.60} {place}. There are: {paths}.")


class TemplateFolder:
    """The templates below `root`, with a folder for each channel; `published` reads published versions."""

    def __init__(self, root: Path, published: Payloads | None = None) -> None:
        self.root = root
        # Telephone numbers without a country code in examples are US numbers.
        self._contracts = contracts_of("US")
        self._engines = {channel: engine_of((root / channel).absolute()) for channel in TO}
        self._previews = Previews(root, mail_senders=(), published=published)

    def all(self) -> list[TemplateName]:
        """Return all templates, sorted. Folders whose names begin with _ are left out: they have files that
        several templates use."""
        files = {channel: self.root.glob(f"{channel}/[!_]*/{file}") for channel, file in TOP.items()}
        return sorted(TemplateName(channel, path.parent.name) for channel in files for path in files[channel])

    def named(self, name: str, channel: str | None = None) -> TemplateName:
        """Return the template with a name. Raises Refused if there is not exactly one."""
        return named(self.all(), name, channel, f"in {self.root}")

    def examples(self, template: TemplateName) -> dict[str, Item]:
        """Return the examples of a template by their names. An example has attributes of an item. Raises
        Refused if a file does not contain a JSON object."""
        files = sorted((self.root / template.path / EXAMPLES).glob("*.json"))
        return {file.stem: read_item(str(file)) for file in files}

    def languages(self, template: TemplateName) -> list[str]:
        """Return the languages of a template besides the default one."""
        folders = (self.root / template.path).glob(f"*/{TOP[template.channel]}")
        return sorted(path.parent.name for path in folders)

    def item(self, template: TemplateName, attributes: Mapping[str, Any]) -> Item:
        """Return an item for a template with these attributes, with an example id and, if the attributes do
        not have one, an example recipient."""
        identity = {"id": "example", "event_type": template.channel, "template": template.name}
        to = {} if {"to", "email"} & attributes.keys() else {"to": TO[template.channel]}
        return {**identity, **to, **attributes}

    def look(self, item: Mapping[str, Any]) -> Preview:
        """Render an item like the sender. Raises Invalid and Malformed."""
        return self._previews.look(parse(item, self._contracts))

    def used(self, template: TemplateName) -> frozenset[str]:
        """Return the variables that a template uses in any of its languages. Raises Refused if a part of it
        cannot be read."""
        return frozenset().union(*(part.variables for part in self._reached(template).values()))

    def parts(self, template: TemplateName) -> dict[str, str]:
        """Return the sources of a template and of all that it refers to, by their paths in the channel's
        folder. Raises Refused for a part that cannot be read."""
        return {name: part.source for name, part in sorted(self._reached(template).items())}

    def faults(self, template: TemplateName) -> list[str]:
        """Return the faults of a template, each as a sentence with file and line. If parts cannot be parsed,
        these are the only faults. Otherwise, faults are parts that a language does not have, and examples
        that do not render."""
        faults = self._engines[template.channel].faults(f"{template.name}/")
        if unreadable := [f"{template.channel}/{fault.sentence}" for fault in faults]:
            return unreadable
        return [*self._incomplete(template), *self._failing(template, self.examples(template))]

    def fault_in(self, version: Version) -> str:
        """Return why a published version does not render one of its examples, or an empty text if it renders
        all."""
        number = {"template_version": version.number}
        examples = {name: {**attributes, **number} for name, attributes in version.examples.items()}
        return next(self._failing(TemplateName(version.channel, version.name), examples), "")

    def _incomplete(self, template: TemplateName) -> Iterator[str]:
        folder = self.root / template.path
        parts = [name for name in FILES if (folder / name).exists()]
        for language in self.languages(template):
            if language != canonical(language):
                yield f"{template.path}/{language}: is never selected; rename it to {canonical(language)}"
            for file in parts:
                if not (folder / language / file).exists():
                    yield f"{template.path}/{language}/{file}: is missing; each language needs all parts"

    def _failing(self, template: TemplateName, examples: Mapping[str, Item]) -> Iterator[str]:
        for name, attributes in examples.items():
            for language in ("", *self.languages(template)):
                localized = {**attributes, "locale": language} if language else attributes
                try:
                    self.look(self.item(template, localized))
                except (Invalid, Malformed) as fault:
                    sentence = f"{fault}"
                    if isinstance(fault, TemplateFault):
                        sentence = f"{template.channel}/{fault.sentence}"
                    yield f"{sentence} (example {template.path}/{EXAMPLES}/{name}.json)"

    def _reached(self, template: TemplateName) -> dict[str, Part]:
        """Return the parts of a template and all parts that they refer to. Raises Refused if a part cannot be
        read."""
        try:
            return self._engines[template.channel].reached(self._own(template))
        except TemplateFault as fault:
            raise Refused(f"{template.channel}/{fault.sentence}.") from None

    def _own(self, template: TemplateName) -> list[str]:
        folder = self.root / template.path
        files = sorted(file for file in folder.rglob("*") if file.name in FILES)
        return [file.relative_to(self.root / template.channel).as_posix() for file in files]
