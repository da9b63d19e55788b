"""A form for each channel, made from its JSON Schema: it shows the item and the commands before it sends."""

import json
import os
import re
import shlex
from collections.abc import Mapping
from functools import cache
from typing import Any

from msgspec import Struct

from mailroom.aws.dynamo import image_of
from mailroom.channels.contracts import CONTRACTS
from mailroom.errors import Invalid, Malformed
from ops.console.site import Answer, Asked, Goto, Shown, Site, link
from ops.messages.items import attributes_of, pairs
from ops.messages.send import judge, new_id, put
from ops.schema import schema_of
from ops.screen import Refused
from ops.stage import function_variables, name

EXAMPLES: dict[str, dict[str, str]] = {
    "mail": {"to": "ada@example.com", "subject": "Welcome", "text": "Hello Ada,\n\nwelcome aboard."},
    "sms": {"to": "+16175551234", "text": "Your code is 123456"},
    "push": {
        "to": "android-device-7",
        "platform": "android",
        "title": "Your order",
        "body": "It is on its way.",
    },
    "fax": {"to": "+12025550112", "pdf_url": "https://example.com/letter.pdf"},
    "webhook": {"url": "https://hooks.example.com/orders", "payload": '{"order": 42}'},
}
"""What the local stage's forms begin with; in other stages it stands there in grey, and is not sent."""
VARIABLES = "variables"
"""The field for attributes that only a template knows, a line each."""
_LONG = ("text", "html", "body", "payload", "data", "headers")
_OPTIONS = ("subject", "text", "template", "topic", "lane", "send_at", "callback_url")
"""Options of `mailroom send` with the attribute's own name; the others are set by --set."""
_schema = cache(schema_of)


class Field(Struct, frozen=True):
    """One attribute. `several`: one value a line. `fault` is what the stage says against the value."""

    name: str
    words: str
    example: str
    value: str
    fault: str
    required: bool
    long: bool
    several: bool
    json: bool
    choices: list[str]


class Draft(Struct, frozen=True):
    """What was typed: the item that it makes, and the faults by the field ("": of none)."""

    item: dict[str, Any]
    faults: dict[str, str]


def show(site: Site, asked: Asked) -> Answer:
    """The form; then the item, the commands and whom it reaches; then it is sent. Raises Refused."""
    channel = asked["channel"] if asked["channel"] in CONTRACTS else next(iter(CONTRACTS))
    if asked.form is None:
        return _form(channel, _examples(channel) if site.stage == "local" else {}, {})
    # A browser sends line breaks as CRLF.
    typed = {field: text.replace("\r\n", "\n") for field, text in asked.form.items()}
    typed["id"] = asked["id"] or new_id(channel)
    if asked["step"] == "change":
        return _form(channel, typed, {})
    draft = _draft(channel, typed)
    faults = draft.faults or _judged(site, draft.item)
    if faults:
        return _form(channel, typed, faults)
    return (_send if asked["step"] == "send" else _preview)(site, channel, typed, draft.item)


def _judged(site: Site, item: Mapping[str, Any]) -> dict[str, str]:
    """What the stage says against an item, by the field at fault."""
    try:
        judge(site.session, site.stage, item)
    except Invalid as fault:
        return {re.split(r"[.\[]", fault.field)[0]: f"{fault}"}
    except Malformed as fault:
        return {"": f"{fault}"}
    return {}


def _send(site: Site, channel: str, typed: Mapping[str, str], item: Mapping[str, Any]) -> Answer:
    if put(site.session, site.stage, item).result == "conflict":
        taken = "id: another message has it, and stays; use a new one, or leave it empty"
        return _form(channel, typed, {"id": taken})
    return Goto(link("/message", id=item["id"], channel=channel))


def _examples(channel: str) -> dict[str, str]:
    receiver = f"{os.environ.get('MAILROOM_PROVIDERS', '')}/receiver/ok"
    local = {"url": receiver} if channel == "webhook" and receiver.startswith("http") else {}
    return EXAMPLES.get(channel, {}) | local


def _form(channel: str, values: Mapping[str, str], faults: Mapping[str, str]) -> Shown:
    fields = [_field(channel, each, values, faults) for each in _schema(channel)["properties"]]
    fields = [each for each in fields if each.name != "event_type"]
    first = [each for each in fields if each.name == "id" or each.example or each.required]
    known = {each.name for each in fields} | {VARIABLES}
    return Shown(
        template="form.html",
        title=f"Send {_words(channel)}",
        status=400 if faults else 200,
        values={
            "channel": channel,
            "channels": list(CONTRACTS),
            "fields": first,
            "more": [each for each in fields if each not in first],
            "variables": values.get(VARIABLES, ""),
            "faults": faults,
            "elsewhere": [fault for field, fault in faults.items() if field not in known],
        },
    )


def _words(channel: str) -> str:
    return {"sms": "a text"}.get(channel, f"a {channel}")


def _field(channel: str, field: str, values: Mapping[str, str], faults: Mapping[str, str]) -> Field:
    document = _schema(channel)
    schema = document["properties"][field]
    kinds = [schema, *schema.get("anyOf", ())]
    types = {each.get("type") for each in kinds}
    alone = [name for each in document.get("allOf", ()) for name in each.get("required", ())]
    text = field in attributes_of(channel).texts
    return Field(
        field,
        next((each["description"] for each in kinds if "description" in each), ""),
        _examples(channel).get(field, ""),
        values.get(field, ""),
        faults.get(field, ""),
        field in [*document["required"], *alone] and field != "id",
        field in _LONG,
        text and "array" in types,
        not text and field != "event_type",
        [each for each in schema.get("enum", ()) if isinstance(each, str)],
    )


def _draft(channel: str, typed: Mapping[str, str]) -> Draft:
    """The item of what was typed."""
    item: dict[str, Any] = {"event_type": channel}
    draft = Draft(item, {})
    attributes = attributes_of(channel)
    for field in _schema(channel)["properties"]:
        text = typed.get(field, "")
        if not text.strip() or field == "event_type":
            continue
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        try:
            if _field(channel, field, typed, {}).several:
                item[field] = lines[0] if len(lines) == 1 else lines
            else:
                item[field] = attributes.value(field, text if field in _LONG else text.strip())
        except Invalid as fault:
            draft.faults[field] = f"{fault}"
    try:
        variables = pairs(typed.get(VARIABLES, "").splitlines(), "The line")
        item |= {field: value for field, value in variables.items() if field not in item}
    except Refused as fault:
        draft.faults[VARIABLES] = f"{fault}"
    return draft


def _preview(site: Site, channel: str, typed: Mapping[str, str], item: Mapping[str, Any]) -> Shown:
    hidden = {field: text for field, text in typed.items() if field not in ("step", "channel")}
    return Shown(
        template="form_preview.html",
        title=f"Send {_words(channel)}?",
        values={
            "channel": channel,
            "hidden": hidden,
            "reach": reach(site, channel),
            "item": json.dumps(item, indent=2, ensure_ascii=False, default=str),
            "put_command": put_command(site.stage, item),
            "send_command": send_command(site.stage, item),
        },
    )


def put_command(stage: str, item: Mapping[str, Any]) -> str:
    """The item by the AWS CLI, to be pasted into a shell."""
    image = json.dumps(image_of(item), ensure_ascii=False)
    options = ["--table-name", name(stage, "mailbox"), "--condition-expression", "attribute_not_exists(id)"]
    return shlex.join(["aws", "dynamodb", "put-item", *options, "--item", image])


def send_command(stage: str, item: Mapping[str, Any]) -> str:
    """The same by `mailroom send`."""
    words = ["mailroom", "send", item["event_type"], "--stage", stage, "--id", item["id"]]
    for field, value in item.items():
        if field in ("id", "event_type"):
            continue
        if field == "to":
            for each in [value] if isinstance(value, str) else value:
                words += ["--to", each]
        elif field in _OPTIONS:
            words += [f"--{field.replace('_', '-')}", value]
        else:
            text = (
                value if isinstance(value, str) and _is_text(item["event_type"], field) else json.dumps(value)
            )
            words += ["--set", f"{field}={text}"]
    return shlex.join(words)


def _is_text(channel: str, field: str) -> bool:
    return field not in attributes_of(channel).others


def reach(site: Site, channel: str) -> str:
    """Whom a message of the channel may reach, in a sentence."""
    if site.stage == "local":
        return "The local stage: a simulator takes it, and it reaches nobody."
    if channel == "webhook":
        return f"Stage {site.stage} posts it to the URL."
    sender = function_variables(site.session.client("lambda"), name(site.stage, f"send-{channel}"))
    if "RECIPIENTS_ONLY" not in sender:
        return f"Stage {site.stage} may reach everybody: its recipient really gets it."
    only = ", ".join(json.loads(sender["RECIPIENTS_ONLY"])) or "nobody by name"
    target = sender.get("REDIRECT_TO")
    others = f"{target} gets what is for anybody else" if target else "what is for anybody else is suppressed"
    return f"Stage {site.stage} may reach {only}; {others}."
