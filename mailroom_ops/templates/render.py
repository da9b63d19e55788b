"""The command `template render`: renders a template as its recipient would get it, without a stage."""

from collections.abc import Iterable
from typing import Annotated

import typer

from mailroom.channels.preview import Preview
from mailroom.errors import Invalid, Malformed, quantity
from mailroom_ops.messages.items import read_item, set_values
from mailroom_ops.shared.screen import (
    Refused,
    ended,
    errors,
    print_line,
    print_lines,
    refusals,
    right,
    screen,
    table_of,
)
from mailroom_ops.templates.folder import TemplateFolder
from mailroom_stacks.paths import TEMPLATES
from mailroom_stacks.templates.checks import Finding, check, in_preview, in_sources
from mailroom_stacks.templates.folder import TO, Item, TemplateName

Channel = Annotated[str | None, typer.Option(help=f"Channel ({', '.join(TO)}) if both have the template.")]


def render(
    name: Annotated[str | None, typer.Argument(help="The template's name.")] = None,
    channel: Channel = None,
    *,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="An attribute or variable, NAME=VALUE. Write lists and numbers as JSON."),
    ] = None,
    json_: Annotated[
        str | None,
        typer.Option("--json", help="A file with the attributes, a JSON object; - is standard input."),
    ] = None,
    example: Annotated[
        str | None, typer.Option(help="The name of one of the template's examples; default: the first.")
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Render all templates with all examples.")] = False,
) -> None:
    """Render a template as it would be sent.

    The command prints headers, text, HTML and size, or a text message's segments. It makes no requests to
    AWS. It reads the attributes from one of the template's examples (the files in its folder `examples`) or
    from another file; --set overrides them.

    With --all, each template is rendered with each of its examples in each of its languages. Exit code 1: one
    of them fails or is empty; each fault and each warning is printed with its file and line.

    Example: mailroom template render weekly-followers --set new_followers=1
    """
    with refusals():
        folder = TemplateFolder(TEMPLATES)
        if all_:
            raise typer.Exit(_all(folder, channel))
        if name is None:
            raise Refused(
                "The template is missing. Name one, or render them all: mailroom template render --all."
            )
        template = folder.named(name, channel)
        attributes = _attributes(folder, template, json_, example)
        attributes |= set_values(template.channel, set_ or ())
        item = folder.item(template, attributes)
        try:
            preview = folder.look(item)
        except (Invalid, Malformed) as fault:
            print_warnings(finding for finding in in_sources(folder, template) if not finding.fatal)
            problem = folder.sentence_of(fault, template, item)
            raise Refused(ended(f"{template.path} cannot be sent: {problem}")) from None
    _show(preview)
    print_warnings((*in_sources(folder, template), *in_preview(folder, template, item, preview)))


def _attributes(
    folder: TemplateFolder, template: TemplateName, file: str | None, example: str | None
) -> Item:
    if file is not None:
        return read_item(file)
    examples = folder.examples(template)
    if example is None:
        return dict(next(iter(examples.values()), {}))
    if example not in examples:
        names = ", ".join(examples) or "none"
        raise Refused(f"{template.path} has no example {example!r:.60}. There are: {names}.")
    return dict(examples[example])


def _show(preview: Preview) -> None:
    for field, value in preview.headers.items():
        print_line(f"{field}: {value}")
    for attachment in preview.attachments:
        print_line(f"Attachment: {attachment}")
    for title, body in (("Text", preview.text), ("HTML", preview.html)):
        if body is not None:
            segments = f", {quantity(preview.segments, 'segment')} in {preview.encoding}"
            print_line("")
            size = quantity(len(body.encode()), "byte")
            print_line(f"{title}, {size}{segments if preview.segments else ''}", "bold")
            print_lines(body)
    if preview.encoding_reason:
        print_line(f"\n{preview.encoding_reason}")
    if preview.unused:
        print_line("")
        print_line(f"Unused attributes: {', '.join(preview.unused)}.")


def print_warnings(findings: Iterable[Finding]) -> None:
    """Print warnings about templates to stderr."""
    for finding in findings:
        print_line(finding.text, "yellow", errors)


def _all(folder: TemplateFolder, channel: str | None) -> int:
    """Render all templates, print their faults, and return the exit code."""
    table = table_of("template", right("examples"), "languages", "")
    findings = [finding for finding in check(folder.root) if channel in (None, finding.template.channel)]
    for template in folder.all():
        if channel in (None, template.channel):
            faults = sum(finding.fatal and finding.template == template for finding in findings)
            examples = folder.example_files(template)
            result = quantity(faults, "fault") if faults else "renders" if examples else "has no example"
            languages = ", ".join(folder.languages(template))
            table.add_row(template.path, f"{len(examples):,}", languages, result)
    screen.print(table)
    for finding in findings:
        print_line(finding.text, "red" if finding.fatal else "yellow")
    return 1 if any(finding.fatal for finding in findings) else 0
