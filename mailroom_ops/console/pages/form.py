"""Page for sending a message: a form for each channel, made from the channel's JSON Schema. Before it sends
the message, it shows the item, and the AWS CLI command that puts the item."""

import json
import os
import re
import secrets
import shlex
from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec
from msgspec import Struct

from mailroom.aws.dynamo_values import image_of
from mailroom.channels.contracts import CHANNELS, CONTRACTS
from mailroom.channels.preview import Preview
from mailroom.errors import Invalid, Malformed
from mailroom_ops.console.site import Answer, Frame, Goto, Request, Shown, Site, View, link
from mailroom_ops.console.variable_fields import VARIABLE, Rows, cells_of, read, tables_of
from mailroom_ops.messages.items import attributes_of, set_values, text_of
from mailroom_ops.messages.send import copy_of, judge, new_id, put
from mailroom_ops.setup.schema import schema_of
from mailroom_ops.shared.deployed_stage import function_settings, name
from mailroom_ops.shared.refusals import Refused
from mailroom_ops.templates.folder import TemplateFolder
from mailroom_stacks.paths import TEMPLATES

MAX_DOCUMENTS = 20
"""Maximum number of mails that are stored for previews."""
VARIABLES = "variables"
"""Field for further attributes, one per line, that are neither the channel's nor in the template's
example."""
_LABELS = {
    "id": "Id",
    "pdf_url": "URL of the PDF",
    "payload_ref": "Object with the content",
    "ttl": "Deleted from the mailbox at",
    "cc": "Copy to",
    "bcc": "Blind copy to",
    "html": "HTML",
    "url": "URL",
    "media_urls": "URLs of media",
    "callback_url": "Callback URL",
}
"""Labels of attributes whose names would be misleading labels."""
_ALIASES = ("email",)
"""Attributes that are aliases of others."""
_FIRST = ("id", "to", "template")
"""Fields that come first, in this order. The others follow in the order of the schema."""
_LONG = ("text", "html", "body", "payload", "data", "headers")


class Field(Struct, frozen=True):
    """Field for an attribute of a channel's items."""

    name: str
    words: str
    required: bool
    long: bool
    """Whether the text may have line breaks."""
    several: bool
    """Whether the value may be a list, with one item in each line."""
    json: bool
    """Whether the value is JSON instead of text."""
    choices: list[str]

    @property
    def label(self) -> str:
        """Label for people."""
        return _LABELS.get(self.name, self.name.replace("_", " ").capitalize())


class Form(View, frozen=True):
    """Values of the form of a channel."""

    channel: str
    channels: list[str]
    first: list[Field]
    templates: list[str]
    """Names of the channel's templates in this checkout."""
    variables: dict[str, Rows]
    """Fields for the variables of the template, by variable."""
    samples: dict[str, Any]
    """Values of the template's example by field."""
    more: list[Field]
    opened: bool
    """Whether the fields in `more` are shown at once."""
    examples: dict[str, str]
    values: Mapping[str, str]
    faults: Mapping[str, str]
    """Faults by the names of their fields."""
    elsewhere: list[str]
    """Faults that do not belong to a field of the form."""
    preview: Preview | None
    """Preview of the message; its recipient is an example if the form has none."""
    problem: str
    """Reason why there is no preview."""
    document: str


class FormPreview(View, frozen=True):
    """Values of the page that shows the message before it is sent."""

    channel: str
    hidden: dict[str, str]
    preview: Preview
    document: str
    reach: str
    item: str
    put_command: str


def show(site: Site, request: Request) -> Answer:
    """Show the form; then the item, its command and the recipients that the stage may reach; then send the
    message. Raises Refused."""
    channel = request["channel"] or next(iter(CONTRACTS))
    if channel not in CONTRACTS:
        raise Refused(f"Start the console again: it does not know the channel {channel!r:.60} of cdk.json.")
    if request.form is None:
        values = _examples(channel) if site.stage == "local" else {}
        if request["copy"]:
            copied = copy_of(site.session, site.stage, request["copy"], channel)
            values = _values(channel, _fields(channel, copied))
        return _form(site, channel, values, {})
    row = request["remove"] or "no row"
    typed = {name: text for name, text in request.form.items() if not name.startswith(row)}
    typed["id"] = request.typed("id") or new_id(channel)
    if request["step"] == "change" or request["add"] or request["remove"]:
        return _form(site, channel, typed, {})
    item, faults = _item(channel, typed)
    verdict = faults or _judged(site, item)
    if not isinstance(verdict, Preview):
        return _form(site, channel, typed, verdict)
    if request["step"] == "send":
        return _send(site, channel, typed, item)
    return _preview(site, channel, typed, item, verdict)


def frame(site: Site, request: Request) -> Answer:
    """Return the HTML of a mail's preview, for its frame."""
    return Frame(site.documents.get(request["document"], ""))


def _judged(site: Site, item: Mapping[str, Any]) -> dict[str, str] | Preview:
    """Return the preview of an item as the stage's sender would render it, or else the item's faults by
    field."""
    try:
        preview = judge(site.session, site.stage, item)[1]
        image_of(item)  # raises Malformed if DynamoDB's limits for numbers or nesting are exceeded
    except Invalid as fault:
        return {re.split(r"[.\[]", fault.field)[0]: f"{fault}"}
    except Malformed as fault:
        return {"": f"{fault}"}
    return preview


def _send(site: Site, channel: str, typed: Mapping[str, str], item: Mapping[str, Any]) -> Answer:
    if put(site.session, site.stage, item).result == "conflict":
        fault = "id: another message has this id; use a new one, or leave it empty"
        return _form(site, channel, typed, {"id": fault})
    return Goto(link("/message", id=item["id"], channel=channel))


def _examples(channel: str) -> dict[str, str]:
    receiver = f"{os.environ.get('MAILROOM_PROVIDERS', '')}/receiver/ok"
    local = {"url": receiver} if channel == "webhook" and receiver.startswith("http") else {}
    return dict(CHANNELS[channel].example) | local


def _fields(channel: str, item: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of an item by field. A variable may have several fields."""
    is_attribute, fields = attributes_of(channel).known, dict[str, Any]()
    for field, value in item.items():
        fields |= {field: value} if is_attribute(field) else cells_of(field, value)
    return fields


def _values(channel: str, fields: Mapping[str, Any]) -> dict[str, str]:
    """Return the texts that the form shows for the values of fields."""
    attributes, values = attributes_of(channel), {}
    for field, value in fields.items():
        text = text_of(channel, field, value)
        if isinstance(value, list) and field in attributes.texts:
            text = "\n".join(value)
        elif not isinstance(value, str):
            text = msgspec.json.format(text, indent=2)
        values[field] = text
    return values


def _form(site: Site, channel: str, values: Mapping[str, str], faults: Mapping[str, str]) -> Shown:
    fields, examples = fields_of(channel), _examples(channel)
    templates = [path.name for path in TemplateFolder(TEMPLATES).all() if path.channel == channel]
    first = [field for field in fields if field.name in ("id", "template", *examples) or field.required]
    first.sort(key=lambda field: _FIRST.index(field.name) if field.name in _FIRST else len(_FIRST))
    optional = [field for field in fields if field not in first]
    samples = _fields(channel, _example(channel, values.get("template", "")))
    example = _values(channel, samples)
    variables = {**tables_of(example), **tables_of(values)}
    cells = {name for rows in variables.values() for row in rows.values() for name in row.values()}
    field_names = {VARIABLES, *(field.name for field in fields), *cells, *map(VARIABLE.__add__, variables)}
    placed = {VARIABLE + name if VARIABLE + name in field_names else name: faults[name] for name in faults}
    folded = (VARIABLES, *(field.name for field in optional))
    unfolded = any(name in placed or values.get(name) for name in folded)
    preview, problem = _draft(site, channel, values) if values else (None, "")
    misplaced = [fault for name, fault in placed.items() if name not in field_names]
    fields_shown = first, templates, variables, samples, optional, unfolded
    texts = {**examples, **example}, values, placed, misplaced
    view = Form(channel, list(CONTRACTS), *fields_shown, *texts, preview, problem, document_of(site, preview))
    return Shown(view, _title(channel), 400 if faults else 200)


def _draft(site: Site, channel: str, values: Mapping[str, str]) -> tuple[Preview | None, str]:
    """Return the preview of the form's message, or else the reason why the stage would refuse the message. A
    form without a recipient gets an example of one."""
    recipient = {name: text for name, text in _examples(channel).items() if name in ("to", "url")}
    typed = {name: text for name, text in values.items() if text.strip()}
    item, faults = _item(channel, {"id": new_id(channel), **recipient, **typed})
    verdict = faults or _judged(site, item)
    return (verdict, "") if isinstance(verdict, Preview) else (None, next(iter(verdict.values())))


def _example(channel: str, template: str) -> dict[str, Any]:
    """Return the first example of a template; empty if there is none."""
    folder = TemplateFolder(TEMPLATES)
    templates = [path for path in folder.all() if (path.channel, path.name) == (channel, template)]
    return next(iter(folder.examples(templates[0]).values()), {}) if templates else {}


@cache
def fields_of(channel: str) -> list[Field]:
    """Return the fields of a channel's form, in the order of the schema."""
    document, texts = schema_of(channel), attributes_of(channel).texts
    alone = [name for condition in document.get("allOf", ()) for name in condition.get("required", ())]
    fields = []
    for field, schema in document["properties"].items():
        kinds = [schema, *schema.get("anyOf", ())]
        fields.append(
            Field(
                field,
                next((kind["description"] for kind in kinds if "description" in kind), ""),
                field in [*document["required"], *alone] and field != "id",
                field in _LONG,
                field in texts and any(kind.get("type") == "array" for kind in kinds),
                field not in texts,
                [choice for choice in schema.get("enum", ()) if isinstance(choice, str)],
            )
        )
    return [field for field in fields if field.name not in ("event_type", "payload_prefix", *_ALIASES)]


def _item(channel: str, typed: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Parse the texts of a form. Return the item, and the faults by field."""
    item: dict[str, Any] = {"event_type": channel}
    faults: dict[str, str] = {}
    for field in fields_of(channel):
        text = typed.get(field.name, "")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if not lines:
            continue
        try:
            value = attributes_of(channel).value(field.name, text if field.long else text.strip())
            item[field.name] = lines if field.several and len(lines) > 1 else value
        except Invalid as fault:
            faults[field.name] = f"{fault}"
    try:
        item = set_values(channel, typed.get(VARIABLES, "").splitlines(), "The variable") | item
        item = read(typed, _fields(channel, _example(channel, typed.get("template", ""))), faults) | item
    except Refused as fault:
        faults[VARIABLES] = f"{fault}"
    return item, faults


def _preview(
    site: Site, channel: str, typed: Mapping[str, str], item: Mapping[str, Any], preview: Preview
) -> Shown:
    hidden = {field: text for field, text in typed.items() if field not in ("step", "channel")}
    image = json.dumps(item, indent=2, ensure_ascii=False, default=str)
    command = put_command(site.stage, item)
    document = document_of(site, preview)
    view = FormPreview(channel, hidden, preview, document, reach(site, channel), image, command)
    return Shown(view, f"{_title(channel)}?")


def document_of(site: Site, preview: Preview | None) -> str:
    """Store a preview's HTML for its frame. Return its token, or an empty text for a message without HTML."""
    if preview is None or preview.html is None:
        return ""
    document = secrets.token_urlsafe(8)
    site.documents[document] = preview.html
    for old in list(site.documents)[:-MAX_DOCUMENTS]:
        site.documents.pop(old, None)
    return document


def put_command(stage: str, item: Mapping[str, Any]) -> str:
    """Return the command of the AWS CLI that puts an item, quoted for a shell."""
    image = json.dumps(image_of(item), ensure_ascii=False)
    options = ["--table-name", name(stage, "mailbox"), "--condition-expression", "attribute_not_exists(id)"]
    return shlex.join(["aws", "dynamodb", "put-item", *options, "--item", image])


class Reaching(Struct, frozen=True, rename="upper"):
    """Recipients that a sender may reach: see `environment.Sender`."""

    recipients_only: list[str] | None = None
    redirect_to: str = ""


def reach(site: Site, channel: str) -> str:
    """Return a sentence about the recipients that a message of the channel may reach."""
    if site.stage == "local":
        return "The local stage: a simulator accepts it, and it reaches nobody."
    if channel == "webhook":
        return f"Stage {site.stage} posts it to the URL."
    sender = name(site.stage, f"send-{channel}")
    reaching = function_settings(site.session.client("lambda"), sender, Reaching)
    if reaching.recipients_only is None:
        return f"Stage {site.stage} may reach everybody: the recipient really gets it."
    only, target = ", ".join(reaching.recipients_only) or "no recipient", reaching.redirect_to
    rule = f"messages to others go to {target}" if target else "messages to others are suppressed"
    return f"Stage {site.stage} may reach {only}; {rule}."


def _title(channel: str) -> str:
    return f"Send a {CHANNELS[channel].message or channel}"
