"""The project's folder of templates, for commands: templates by name, and published versions."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from mailroom.content.engine import Part, TemplateFault
from mailroom.content.templates import FILES, Version, attached_files
from mailroom.errors import Invalid, Malformed
from mailroom_ops.messages.items import read_item
from mailroom_ops.shared.refusals import Refused
from mailroom_stacks.templates.folder import Folder, Item, TemplateName


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


class TemplateFolder(Folder):
    """The folder of templates, as commands use it."""

    def named(self, name: str, channel: str | None = None) -> TemplateName:
        """Return the template with a name. Raises Refused if there is not exactly one."""
        return named(self.all(), name, channel, f"in {self.root}")

    def examples(self, template: TemplateName) -> dict[str, Item]:
        """Return the examples of a template by their names. An example has attributes of an item. Raises
        Refused if a file does not contain a JSON object."""
        return {file.stem: read_item(str(file)) for file in self.example_files(template)}

    def used(self, template: TemplateName) -> frozenset[str]:
        """Return the variables that a template uses in any of its languages. Raises Refused if a part of it
        cannot be read."""
        return frozenset().union(*(part.variables for part in self._reached(template).values()))

    def parts(self, template: TemplateName) -> dict[str, str]:
        """Return the sources of a template and of all that it refers to, by their paths in the channel's
        folder. Raises Refused for a part that cannot be read."""
        return {name: part.source for name, part in sorted(self._reached(template).items())}

    def attached(self, template: TemplateName) -> dict[str, bytes]:
        """Return the files that are attached to each mail of a template, by name."""
        return attached_files(self.root / template.path)

    def fault_in(self, version: Version) -> str:
        """Return why a published version does not render one of its examples, or an empty text if it renders
        all."""
        template = TemplateName(version.channel, version.name)
        for name, attributes in version.examples.items():
            for language in ("", *self.languages(template)):
                item = self.item(template, attributes, language)
                try:
                    self.look({**item, "template_version": version.number})
                except (Invalid, Malformed) as fault:
                    sentence = f"{fault}"
                    if isinstance(fault, TemplateFault):
                        sentence = f"{template.channel}/{fault.sentence}"
                    return f"{sentence} (example {name})"
        return ""

    def _reached(self, template: TemplateName) -> Mapping[str, Part]:
        """Return the parts of a template and all parts that they refer to. Raises Refused if a part cannot be
        read."""
        engine = self.engines[template.channel]
        names = (name for name in engine.sources if name.startswith(f"{template.name}/"))
        try:
            return engine.reached(name for name in names if Path(name).name in FILES)
        except TemplateFault as fault:
            raise Refused(f"{self.path(template.channel, fault.sentence)}.") from None
