"""The commands `template`: publish versions of a stage's templates, and choose the current version."""

import difflib
from collections.abc import Iterator
from typing import Annotated

import msgspec
import typer
from msgspec import Struct
from rich.text import Text

from mailroom.content.payloads import Payloads
from mailroom.content.templates import Version, engine_of
from mailroom.content.versions import DEPLOYED
from mailroom.message.message import encode
from mailroom_ops.shared.deeds import with_names
from mailroom_ops.shared.deployed_stage import aws_session
from mailroom_ops.shared.options import AsJson, Stage, Yes
from mailroom_ops.shared.screen import (
    Refused,
    aws_faults,
    confirm,
    fold,
    print_answer,
    print_json,
    print_line,
    print_lines,
    right,
    screen,
    stacked,
    table_of,
    whole,
)
from mailroom_ops.shared.times import short
from mailroom_ops.templates.folder import TemplateFolder, named
from mailroom_ops.templates.published import NOTHING, Published, published_of, words_of
from mailroom_ops.templates.render import Channel, print_warnings
from mailroom_stacks.paths import TEMPLATES
from mailroom_stacks.templates.checks import check
from mailroom_stacks.templates.folder import TemplateName

Name = Annotated[str, typer.Argument(help="The template's name.")]
NameOrAll = Annotated[str, typer.Argument(help="The template's name; with --diff, default: all.")]


class PutAnswer(Struct, frozen=True):
    """Output of `template put`: the current version, and whether it is new. `needs` are the variables that
    this version uses, but that the previous version did not use."""

    stage: str
    channel: str
    name: str
    version: int
    new: bool
    needs: list[str]


class TemplateLine(Struct, frozen=True):
    """Template of a stage."""

    template: str
    """Channel and name, as in mail/welcome."""
    version: int
    """Current version; the deployed template has the number 0."""
    by: str = ""
    """Operator who chose the version."""
    at: str = ""
    fault: str = ""
    """Reason why the version does not render, such as a filter that templates do not have."""


class DiffAnswer(Struct, frozen=True):
    """Output of `template show --diff`: lines of a unified diff from the current versions to the folder;
    empty if they are equal."""

    stage: str
    lines: list[str]


class RollbackAnswer(Struct, frozen=True):
    """Output of `template rollback`: the current version; the deployed template has the number 0."""

    stage: str
    template: str
    version: int


class TemplatesAnswer(Struct, frozen=True):
    """Output of `template list`."""

    stage: str
    templates: list[TemplateLine]


def put(
    name: Name,
    stage: Stage = "dev",
    channel: Channel = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Publish a template of this folder. Its new version is current within a minute.

    The command first checks the template: its syntax, its languages, and its examples, of which it needs at
    least one. Queued messages keep their version; messages that wait for their time get the new one.
    Unchanged content makes no new version, so a CI job may publish every merge.

    Exit code 2: the template has a fault, or somebody else published at the same time.

    Example: mailroom template put weekly-followers --stage prod
    """
    with aws_faults(stage):
        folder = TemplateFolder(TEMPLATES)
        template = folder.named(name, channel)
        examples = folder.examples(template)
        findings = check(TEMPLATES, [template.path])
        print_warnings(finding for finding in findings if not finding.fatal)
        if faults := [finding.text for finding in findings if finding.fatal]:
            raise Refused("\n".join(faults))
        if not examples:
            path = f"{TEMPLATES.name}/{template.path}/examples/one.json"
            raise Refused(f"{template.path} has no example to check it with: write one, such as {path}.")
        published = published_of(aws_session(), stage)
        before = published.choices().get(template.path)
        needs = _needs(published, folder, template, before.version if before else DEPLOYED)
        version, new = published.put(template, folder.parts(template), examples, folder.attached(template))
    answer = PutAnswer(stage, template.channel, template.name, version.number, new, needs)
    print_answer(answer, _show_put, as_json=as_json)


def list_(stage: Stage = "dev", *, as_json: AsJson = False) -> None:
    """List the templates with their current versions, and the reason if a version does not render.

    A new release of Mailroom may interpret templates differently: run this command with the new release
    before you deploy it.

    Example: mailroom template list --stage prod
    """
    with aws_faults(stage):
        published = published_of(aws_session(), stage)
        folder = TemplateFolder(TEMPLATES, Payloads(published.client, published.bucket))
        choices, lines = published.choices(), []
        for path in sorted({*choices, *(template.path for template in folder.all())}):
            choice, fault = choices.get(path, NOTHING), ""
            if choice.version != DEPLOYED:
                fault = folder.fault_in(published.version(_of_path(path), choice.version))
            lines.append(TemplateLine(path, choice.version, choice.by, choice.at, fault))
    print_answer(TemplatesAnswer(stage, lines), _show_list, as_json=as_json)


def show(
    name: NameOrAll = "",
    stage: Stage = "dev",
    channel: Channel = None,
    version: Annotated[int | None, typer.Option(help="The version; default: the current one.")] = None,
    *,
    diff: Annotated[
        bool, typer.Option("--diff", help="Compare the current version with this folder, instead.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show a published version, or how this folder differs from it.

    The command prints who published the version and when, its parts, its examples, and the other versions.

    --diff: compares the stage's current versions with this folder. Templates without a published version are
    left out, because `mailroom diff` compares what is deployed. Exit code 1: they differ.

    Example: mailroom template show weekly-followers --version 3 --stage prod

    Example: mailroom template show --diff --stage prod
    """
    if diff and version:
        raise typer.BadParameter("--diff compares the current version; leave out --version.")
    if not (name or diff):
        raise typer.BadParameter("Name the template, or use --diff.")
    with aws_faults(stage):
        published = published_of(aws_session(), stage)
        if diff:
            answer = DiffAnswer(stage, [*_differences(published, name, channel)])
            print_answer(answer, _show_diff, as_json=as_json)
            raise typer.Exit(1 if answer.lines else 0)
        template = _named(published, name, channel)
        content = published.version(template, version or published.choices()[template.path].version)
        numbers = published.numbers(template)
    if as_json:
        # `encode` writes a Decimal as a JSON number, not as a string.
        print_json(msgspec.Raw(encode(content).encode()))
        return
    print_line(f"{template.path}, version {content.number} of {', '.join(map(str, numbers))}", "bold")
    print_line(f"published {short(content.at)} by {with_names(content.by)}")
    print_line(f"examples: {', '.join(content.examples)}")
    if content.attached:
        print_line(f"attached files: {', '.join(content.attached)}")
    for path, source in content.parts.items():
        print_line("")
        print_line(path, "bold")
        print_lines(source)


def _differences(published: Published, name: str, channel: str | None) -> Iterator[str]:
    """Yield the lines of a unified diff from the current version of a template, or of all, to the folder."""
    folder, choices = TemplateFolder(TEMPLATES), published.choices()
    for template in [_named(published, name, channel)] if name else [*map(_of_path, choices)]:
        if (number := choices[template.path].version) != DEPLOYED:
            yield from _compared(published.version(template, number), folder)


def rollback(
    name: Name,
    stage: Stage = "dev",
    channel: Channel = None,
    to: Annotated[
        int | None,
        typer.Option(
            min=0, help="The version; default: the one that was current before. 0 is the deployed template."
        ),
    ] = None,
    *,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Make an earlier version current again. Queued messages keep their version.

    Each run without --to goes one version further back, and skips versions that were rolled back or were
    never current. With --to, you can make any version current, including one that was rolled back.

    Example: mailroom template rollback weekly-followers --stage prod
    """
    with aws_faults(stage):
        published = published_of(aws_session(), stage)
        template = _named(published, name, channel)
        which = "the previous version" if to is None else words_of(to)
        confirm(f"Make {which} of {template.path} current?", yes=yes)
        number = published.roll_back(template, to)
    print_answer(RollbackAnswer(stage, template.path, number), _show_rollback, as_json=as_json)


def _named(published: Published, name: str, channel: str | None) -> TemplateName:
    """Return the published template with a name. Raises Refused if there is not exactly one."""
    return named([_of_path(path) for path in published.choices()], name, channel, "among the published")


def _of_path(path: str) -> TemplateName:
    return TemplateName(*path.split("/", 1))


def _needs(published: Published, folder: TemplateFolder, template: TemplateName, number: int) -> list[str]:
    """Return the variables that the template in the folder uses, but that version `number` does not use."""
    if number == DEPLOYED:
        return []
    parts = published.version(template, number).parts
    return sorted(folder.used(template) - engine_of(parts).variables(*parts))


def _compared(version: Version, folder: TemplateFolder) -> Iterator[str]:
    template = TemplateName(version.channel, version.name)
    folder_parts = folder.parts(template)
    for path in sorted({*version.parts, *folder_parts}):
        published, mine = version.parts.get(path, ""), folder_parts.get(path, "")
        yield from difflib.unified_diff(
            published.splitlines(),
            mine.splitlines(),
            f"version {version.number}: {template.channel}/{path}",
            f"folder: {template.channel}/{path}",
            lineterm="",
        )
    if version.examples != folder.examples(template):
        yield f"+ {template.path}: the examples differ"
    if version.attached != folder.attached(template):
        yield f"+ {template.path}: the attached files differ"


def _show_put(answer: PutAnswer) -> None:
    sentence = "is current within a minute" if answer.new else "is current already, with this content"
    print_line(f"{answer.channel}/{answer.name}: version {answer.version} {sentence}.", "bold")
    if answer.needs:
        print_line(f"It uses new variables: {', '.join(answer.needs)}. Messages without them fail.")


def _show_diff(answer: DiffAnswer) -> None:
    for line in answer.lines:
        print_line(line, {"+": "green", "-": "red"}.get(line[:1], ""))
    if not answer.lines:
        print_line("The published templates are equal to the folder.")


def _show_rollback(answer: RollbackAnswer) -> None:
    print_line(f"{answer.template}: {words_of(answer.version)} is current within a minute.")


def _show_list(answer: TemplatesAnswer) -> None:
    columns = (fold("template", ratio=1), right("version"), whole("since (UTC)"))
    screen.print(table_of(*columns, rows=map(_cells, answer.templates)))
    for line in answer.templates:
        if line.fault:
            print_line(f"{line.template} does not render: {line.fault}. Correct it, and publish it.", "red")


def _cells(line: TemplateLine) -> tuple[str | Text, ...]:
    template = stacked(line.template, f"by {with_names(line.by)}" if line.by else "")
    number = f"{line.version}" if line.version else "deployed"
    return template, number, short(line.at).removesuffix(" UTC") if line.at else ""
