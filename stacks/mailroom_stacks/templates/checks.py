"""Checks of all templates with their examples, for synth and for the commands."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from mailroom.channels.mail.contract import UNSUPPORTED
from mailroom.channels.preview import Preview
from mailroom.content.templates import MAX_ATTACHED_BYTES, attached_files
from mailroom.errors import Invalid, Malformed
from mailroom.message.message import decode
from mailroom_stacks.templates.folder import Folder, Item, TemplateName
from mailroom_stacks.templates.warnings import EMPTY, in_result, in_source


class Finding(Struct, frozen=True):
    """Fault or warning."""

    template: TemplateName
    """Template; its name is empty for a whole channel."""
    sentence: str
    """Sentence with the file and the cure."""
    example: str = ""
    """Example that was rendered."""
    fatal: bool = False
    """Whether the finding is a fault."""

    @property
    def text(self) -> str:
        """Sentence with the example."""
        return f"{self.sentence} (example {self.example})" if self.example else self.sentence


def check(root: Path, paths: Sequence[str] = ()) -> list[Finding]:
    """Return the faults and warnings about all templates in a folder, or about the templates `paths`, such as
    mail/welcome. Each sentence is returned once."""
    folder, findings = Folder(root), dict[str, Finding]()
    for finding in _findings(folder, paths):
        findings.setdefault(finding.sentence, finding)
    return list(findings.values())


def _findings(folder: Folder, paths: Sequence[str]) -> Iterator[Finding]:
    for template in folder.all():
        if not paths or template.path in paths:
            yield from in_sources(folder, template)
            yield from _in_attached(folder, template)
            for file in folder.example_files(template):
                for language in ("", *folder.languages(template)):
                    yield from _in_example(folder, template, file, language)
    for channel in () if paths else folder.engines:
        yield from in_sources(folder, TemplateName(channel, ""))


def _in_example(folder: Folder, template: TemplateName, file: Path, language: str) -> Iterator[Finding]:
    place = folder.path(template.channel, file.relative_to(folder.root / template.channel).as_posix())
    place += f" in {language}" if language else ""
    try:
        item = folder.item(template, decode(file.read_text("utf-8-sig")), language)
    except (OSError, ValueError) as fault:  # such as Malformed, or text that is not UTF-8
        yield Finding(template, f"{place}: {fault}", fatal=True)
        return
    try:
        yield from in_preview(folder, template, item, folder.look(item), place)
    except (Invalid, Malformed) as fault:
        yield Finding(template, folder.sentence_of(fault, template, item), place, fatal=True)


def _in_attached(folder: Folder, template: TemplateName) -> Iterator[Finding]:
    """Yield faults of the files that are attached to each mail of a template."""
    files = attached_files(folder.root / template.path)
    place = folder.path(template.channel, f"{template.name}/files")
    if files and template.channel != "mail":
        yield Finding(template, f"{place}: only mails have files; remove the folder", fatal=True)
    for name in filter(UNSUPPORTED.search, files):
        yield Finding(template, f"{place}/{name}: is refused by providers; link to the file", fatal=True)
    if (size := sum(map(len, files.values()))) > MAX_ATTACHED_BYTES:
        sentence = f"{size:,} bytes are too many; attach at most {MAX_ATTACHED_BYTES:,}, or link to a file"
        yield Finding(template, f"{place}: {sentence}", fatal=True)


def in_sources(folder: Folder, template: TemplateName) -> Iterator[Finding]:
    """Yield findings about the sources of a template and about shared parts, or about the whole channel if
    the name is empty."""
    engine, begin = folder.engines[template.channel], f"{template.name}/".lstrip("/")
    for fault in engine.faults(begin):
        yield Finding(template, folder.sentence_of(fault, template, {}), fatal=True)
    if template.name:
        yield from (Finding(template, sentence, fatal=True) for sentence in folder.incomplete(template))
    for name, source in engine.sources.items():
        for position, sentence in in_source(name, engine.sources) if name.startswith((begin, "_")) else ():
            place = folder.path(template.channel, f"{name}:{_line_at(source, position)}")
            yield Finding(template, f"{place}: {sentence}")


def in_preview(
    folder: Folder, template: TemplateName, item: Item, preview: Preview, example: str = ""
) -> Iterator[Finding]:
    """Yield findings about a rendered message."""
    sources = folder.engines[template.channel].sources
    for file, sentence, cause in in_result(preview):
        part = folder.part(template, item, file)
        # The cause may be in a shared part of the same format, or come from a variable.
        places = (
            f"{name}:{_line_at(sources[name], match.start())}"
            for name in (part, *(name for name in sources if name.startswith("_")))
            if cause and name.endswith(file[-4:]) and (match := re.search(cause, sources.get(name, "")))
        )
        place = folder.path(template.channel, next(places, part))
        yield Finding(template, f"{place}: {sentence}", example, sentence == EMPTY)


def _line_at(source: str, position: int) -> int:
    return source.count("\n", 0, position) + 1
