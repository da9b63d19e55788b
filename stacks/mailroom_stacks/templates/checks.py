"""Checks of all templates with their examples.

They run in a process of their own, because a template can end its process: writing a value that contains
itself overflows the stack. Each step is announced before it begins, so the step that ended the process is
known, and a new process takes the steps after it.
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

import msgspec
from msgspec import Struct

from mailroom.channels.preview import Preview
from mailroom.errors import Invalid, Malformed
from mailroom.message.message import decode
from mailroom_stacks.templates.folder import Folder, Item, TemplateName
from mailroom_stacks.templates.warnings import EMPTY, in_result, in_source


class Step(Struct, frozen=True):
    """Step of the checks: the sources of a channel or of a template, or a rendering of an example."""

    template: TemplateName
    """Template; its name is empty for the whole channel."""
    example: Path | None = None
    language: str = ""


class Finding(Struct, frozen=True):
    """Fault or warning."""

    template: TemplateName
    sentence: str
    """Sentence with the file and the cure. It is empty in the announcement of a step."""
    example: str = ""
    """Example that was rendered."""
    fatal: bool = False
    """Whether the finding is a fault."""

    @property
    def text(self) -> str:
        """Sentence with the example."""
        return f"{self.sentence} (example {self.example})" if self.example else self.sentence


_lines = msgspec.json.Decoder(Finding)


def check(root: Path, paths: Sequence[str] = ()) -> list[Finding]:
    """Return the faults and warnings about all templates in a folder, or about the templates `paths`, such as
    mail/welcome. Each sentence is returned once."""
    findings, first = dict[str, Finding](), 0
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    while True:
        command = [sys.executable, "-P", "-m", __name__, str(root.absolute()), str(first), *paths]
        process = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=False)  # noqa: S603 - no shell
        lines = [*map(_lines.decode, process.stdout.splitlines())]
        for line in lines:
            if line.sentence:
                findings.setdefault(line.sentence, line)
        announced = [line for line in lines if not line.sentence]
        if process.returncode >= 0 or not announced:
            process.check_returncode()
            return list(findings.values())
        template, example = announced[-1].template, announced[-1].example
        cause = f"ends its process ({signal.Signals(-process.returncode).name})"
        cure = "do not write a value that contains itself, such as `ns` after `{% set ns.a = ns %}`"
        sentence = f"{root.name}/{template.path}: {cause}; {cure}"
        findings.setdefault(sentence, Finding(template, sentence, example, fatal=True))
        first += len(announced)


def main() -> None:
    """Print the findings of the folder in the first argument as lines of JSON, beginning with the step that
    the second argument numbers. Further arguments are names of templates."""
    root, first, *paths = sys.argv[1:]
    folder = Folder(Path(root))
    for step in islice(steps(folder, paths), int(first), None):
        for line in chain([Finding(step.template, "", _place(folder, step))], findings_of(folder, step)):
            sys.stdout.write(f"{msgspec.json.encode(line).decode()}\n")
            sys.stdout.flush()


def steps(folder: Folder, paths: Sequence[str] = ()) -> Iterator[Step]:
    """Yield the steps of the checks of all templates, or of the templates `paths`."""
    for template in folder.all():
        if not paths or template.path in paths:
            yield Step(template)
            for example in folder.example_files(template):
                yield from (
                    Step(template, example, language) for language in ("", *folder.languages(template))
                )
    if not paths:
        yield from (Step(TemplateName(channel, "")) for channel in folder.engines)


def findings_of(folder: Folder, step: Step) -> Iterator[Finding]:
    """Yield the findings of a step."""
    template, place = step.template, _place(folder, step)
    if step.example is None:
        yield from in_sources(folder, template)
        return
    try:
        item = folder.item(template, decode(step.example.read_text("utf-8-sig")), step.language)
    except (OSError, ValueError) as fault:  # such as Malformed, or text that is not UTF-8
        yield Finding(template, f"{place}: {fault}", fatal=True)
        return
    try:
        yield from in_preview(folder, template, item, folder.look(item), place)
    except (Invalid, Malformed) as fault:
        yield Finding(template, folder.sentence_of(fault, template, item), place, fatal=True)


def _place(folder: Folder, step: Step) -> str:
    """Return the path of an example, and its language."""
    language = f" in {step.language}" if step.language else ""
    return f"{folder.root.name}/{step.example.relative_to(folder.root)}{language}" if step.example else ""


def in_sources(folder: Folder, template: TemplateName) -> Iterator[Finding]:
    """Yield findings about the sources of a template and about shared parts, or about the whole channel if
    the name is empty."""
    sources, begin = folder.sources[template.channel], f"{template.name}/".lstrip("/")
    for fault in folder.engines[template.channel].faults(begin):
        yield Finding(template, folder.sentence_of(fault, template, {}), fatal=True)
    if template.name:
        yield from (Finding(template, sentence, fatal=True) for sentence in folder.incomplete(template))
    for name, source in sources.items():
        for position, sentence in in_source(name, sources) if name.startswith((begin, "_")) else ():
            place = folder.path(template.channel, f"{name}:{_line_at(source, position)}")
            yield Finding(template, f"{place}: {sentence}")


def in_preview(
    folder: Folder, template: TemplateName, item: Item, preview: Preview, example: str = ""
) -> Iterator[Finding]:
    """Yield findings about a rendered message."""
    sources = folder.sources[template.channel]
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


if __name__ == "__main__":
    main()
