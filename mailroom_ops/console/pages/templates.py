"""Pages of templates: each is rendered with its examples, and can be sent as a test message."""

from collections.abc import Mapping
from typing import Any

from mailroom.channels.preview import Preview
from mailroom.content.templates import TOP
from mailroom.content.versions import DEPLOYED, CurrentVersions
from mailroom.errors import Invalid, Malformed
from mailroom.message.message import parse
from mailroom_ops.console.pages.form import reach
from mailroom_ops.console.pages.messages import rules_at
from mailroom_ops.console.site import Answer, Frame, Goto, Request, Shown, Site, View, link
from mailroom_ops.messages.send import new_id, put
from mailroom_ops.shared.deeds import Deed
from mailroom_ops.shared.refusals import Refused, ended
from mailroom_ops.templates.folder import TemplateFolder
from mailroom_ops.templates.published import words_of
from mailroom_stacks.paths import TEMPLATES
from mailroom_stacks.templates.checks import check
from mailroom_stacks.templates.folder import Item, TemplateName

TEST_HEADER = "X-Mailroom-Test"
"""Header of test mails, with the name of the template."""


class Templates(View, frozen=True):
    """Values of the list of templates."""

    rows: list[tuple[TemplateName, int, list[str], str]]
    """Templates with the number of their examples, their languages, and the current version."""


class Template(View, frozen=True):
    """Values of the page of a template."""

    template: TemplateName
    examples: list[str]
    example: str
    languages: list[str]
    preview: Preview | None
    problem: str
    faults: list[str]
    variables: list[str]
    sources: dict[str, str]
    counts: str
    reach: str
    deeds: list[Deed]


def show(site: Site, request: Request) -> Answer:
    """Show the templates of this folder, or one of them with an example. With a form, send a test message.
    Raises Refused."""
    folder = TemplateFolder(TEMPLATES)
    counts = _counts(site)
    if not request["name"]:
        rows = [
            (
                template,
                len(folder.examples(template)),
                folder.languages(template),
                words_of(counts.get(template.path, DEPLOYED)),
            )
            for template in folder.all()
        ]
        return Shown(Templates(rows))
    template = folder.named(request["name"], request["channel"] or None)
    if request.form is not None:
        return _send(site, template, _item(folder, template, request), request.typed("to"))
    preview, problem = _rendered(folder, template, request)
    view = Template(
        template=template,
        examples=list(folder.examples(template)),
        example=request["example"] or next(iter(folder.examples(template)), ""),
        languages=folder.languages(template),
        preview=preview,
        problem=problem,
        faults=[fault.text for fault in check(TEMPLATES, [template.path]) if fault.fatal],
        variables=sorted(folder.used(template)),
        sources={path: _numbered(text) for path, text in folder.parts(template).items()},
        counts=words_of(counts.get(template.path, DEPLOYED)),
        reach=reach(site, template.channel),
        deeds=site.deeds_on(f"template#{template.path}"),
    )
    return Shown(view, template.path)


def frame(_site: Site, request: Request) -> Answer:
    """Return the HTML of an example, for the frame."""
    folder = TemplateFolder(TEMPLATES)
    preview, _ = _rendered(folder, folder.named(request["name"], request["channel"] or None), request)
    return Frame((preview and preview.html) or "")


def _item(folder: TemplateFolder, template: TemplateName, request: Request) -> Item:
    examples = folder.examples(template)
    attributes: Mapping[str, Any] = examples.get(request["example"]) or next(iter(examples.values()), {})
    language = {"locale": request["locale"]} if request["locale"] else {}
    return folder.item(template, {**attributes, **language})


def _rendered(folder: TemplateFolder, template: TemplateName, request: Request) -> tuple[Preview | None, str]:
    item = _item(folder, template, request)
    try:
        return folder.look(item), ""
    except (Invalid, Malformed) as fault:
        return None, folder.sentence_of(fault, template, item)


def _counts(site: Site) -> dict[str, int]:
    """Return the current versions in the stage, by channel and name."""
    rules = rules_at(site)
    if not rules.templates_bucket:
        return {}
    versions = CurrentVersions(site.client("s3"), rules.templates_bucket, site.clock)
    return {f"{channel}/{name}": number for channel in TOP for name, number in versions.of(channel).items()}


def _send(site: Site, template: TemplateName, example: Item, to: str) -> Answer:
    """Send an example as a normal message that is marked as a test. The stage renders its own version of the
    template, which may differ from the version in this folder."""
    item = {field: value for field, value in example.items() if field not in ("to", "email", "cc", "bcc")}
    item |= {"id": f"test-{new_id(template.channel)}", "to": to}
    if template.channel == "mail":
        item["headers"] = {**item.get("headers", {}), TEST_HEADER: template.name}
    try:
        parse(item, rules_at(site).contracts())
    except (Invalid, Malformed) as fault:
        raise Refused(ended(f"The test was not sent: {fault}")) from None
    put(site.session, site.stage, item)
    return Goto(link("/message", id=item["id"], channel=template.channel))


def _numbered(source: str) -> str:
    return "\n".join(f"{number:>3}  {line}" for number, line in enumerate(source.splitlines(), 1))
