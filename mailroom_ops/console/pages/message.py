"""Pages of a message: its history, status, request and content, and the actions on it."""

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Literal

from botocore.exceptions import BotoCoreError, ClientError

from mailroom.channels.contracts import CHANNELS
from mailroom.channels.previewed import Preview
from mailroom.errors import Invalid, InvalidSecret, Malformed
from mailroom.ledger import cancellation
from mailroom.ledger.status_reader import READY, MessageStatus, of_ledger
from mailroom.message.message import Key
from mailroom_ops.console.pages.messages import deployed_at, finder_at, reader_at, rules_at
from mailroom_ops.console.site import Answer, Frame, Goto, Request, Shown, Site, View, link
from mailroom_ops.messages.advice import CANCELLED, advice, buttons, commands
from mailroom_ops.messages.items import attributes_of, text_of
from mailroom_ops.messages.lookup import row_of
from mailroom_ops.messages.timeline import TRIED, Step, last_try, meaning, timeline
from mailroom_ops.messages.views import MessageView, titled, view_of
from mailroom_ops.messages.waiting import turn_of
from mailroom_ops.shared.deeds import Deed, thing_of
from mailroom_ops.shared.refusals import Refused
from mailroom_ops.shared.selected_messages import MessageRef

RENDERED = tuple(name for name, each in CHANNELS.items() if each.rendered)
"""Channels whose content is rendered from a template; the items of others have the whole content."""
UNDER_WAY = ("scheduled", "sending", "retrying")
Action = Literal["resend", "settle", "cancel"]
VERBS: dict[Action, str] = {"resend": "Send again", "settle": "Record its outcome", "cancel": "Cancel"}
"""Names of the actions."""
_LISTED = ("bounced", "complained", "suppressed")
"""Statuses for which the page of a message links to the recipients' pages, which show suppressions and
opt-outs."""
_DONE = {
    "resend": "It is on its way again.",
    "settle": "You have recorded its outcome.",
    "cancel": "You have cancelled it: it is not sent.",
}


class Message(View, frozen=True):
    """Values of the page of a message."""

    view: MessageView
    recipients: list[str]
    campaign: str
    followed_by: list[MessageStatus]
    advice: list[str]
    listed: list[str]
    """Recipients who may have a suppression or an opt-out."""
    meaning: str
    steps: list[Step]
    folded: int
    """Index of the first step after those of earlier tries, which are folded; 0 without them."""
    source: str | None
    """Item of the mailbox as JSON; None if it does not exist, or if only the live part is shown."""
    preview: Preview | None
    """Content, rendered again; None if the item does not exist or cannot be rendered."""
    problem: str
    """Reason why the item cannot be rendered."""
    variables: dict[str, str]
    of_template: str
    topic: str
    actions: dict[Action, str]
    """Names of the actions that may help."""
    deeds: list[Deed]
    """Deeds on the message; empty if only the live part is shown."""
    copyable: bool
    """Whether the content still exists, so that a copy can be sent to another recipient."""
    done: str
    tried: str = TRIED


class MessageChoice(View, frozen=True):
    """Values of the page of an id that several channels have, or that is unknown."""

    found: list[MessageStatus]


class MessageReceipt(View, frozen=True):
    """Values of the receipt of a delivered fax."""

    fax: MessageStatus
    document: str
    """URL or object of the PDF, without a signature."""


def show(site: Site, request: Request) -> Answer:
    """Show the message of an id, or a choice if several channels have the id."""
    messages = find(site, request)
    typed = request.typed("id"), request.typed("channel")
    if not messages and typed[0] and typed != (request["id"], request["channel"]):
        return Goto(link("/message", id=typed[0], channel=typed[1]))
    if len(messages) != 1:
        status = 200 if messages or not request["id"] else 404
        return Shown(MessageChoice(messages), status=status)
    (message,) = messages
    item = reader_at(site).item(message.id, message.event_type)
    moment = site.clock()
    turn = turn_of(site.session, site.stage, message, site.clock)
    view = view_of(message, site.stage, moment, deleted=item is None)
    words = buttons(site.stage) if request.viewer is None else commands(message, site.stage)
    steps = advice(message, words, moment, view.since, deleted=item is None, turn=turn)
    complete = item is not None and not request.update and request.contents
    preview, problem = _preview(site, item, message) if complete else (None, "")
    values = Message(
        view=view,
        recipients=recipients_of(message),
        campaign=message.campaign or "",
        followed_by=_followed_by(site, message),
        advice=list(steps),
        listed=recipients_of(message) if message.status in _LISTED and not message.recipients else [],
        meaning=meaning(message),
        steps=(life := timeline(message, moment)),
        folded=last_try(life),
        source=json.dumps(item, indent=2, ensure_ascii=False, default=_json) if complete else None,
        preview=preview,
        problem=problem,
        variables={
            field: text_of(message.event_type, field, value)
            for field, value in (item or {}).items()
            if request.contents and not attributes_of(message.event_type).known(field)
        },
        of_template=titled(message.template or "", message.template_version),
        topic=f"{(item or {}).get('topic') or ''}",
        actions={
            action: VERBS[action] if request.viewer is None else getattr(words, action)
            for action in _actions(message, moment)
        },
        deeds=[] if request.update else site.deeds_on(thing_of(message)),
        copyable=item is not None,
        done=_DONE.get(request["done"], ""),
    )
    return Shown(values, row_of(message).headline, content=complete)


def frame(site: Site, request: Request) -> Answer:
    """Return a mail's HTML, for the frame on its page. Raises Refused for a person who may not see it."""
    if not request.contents:
        raise Refused("Your right does not include the contents of messages.")
    messages = find(site, request)
    item = reader_at(site).item(messages[0].id, messages[0].event_type) if messages else None
    preview = _preview(site, item, messages[0])[0] if messages else None
    return Frame((preview and preview.html) or "")


def receipt(site: Site, request: Request) -> Answer:
    """Show the ledger's facts about a delivered fax on a page to print. Raises Refused for any other
    message."""
    item = next(iter(deployed_at(site).items("ledger", MessageRef(request["id"], "fax"))), {})
    if item.get("status") != "delivered":
        raise Refused(f"{request['id']!r:.200} is not a delivered fax, so it has no receipt.")
    document = f"{item.get('pdf_url') or item.get('payload_ref', '')}".partition("?")[0]
    return Shown(MessageReceipt(of_ledger(item), document), f"Receipt of the fax {item['id']}")


def find(site: Site, request: Request) -> list[MessageStatus]:
    """Return the messages with the id of the request, of all channels if the request names no channel."""
    return reader_at(site).find(request["id"], request["channel"] or None)


def _followed_by(site: Site, message: MessageStatus) -> list[MessageStatus]:
    """Return the messages that name this message in their `unless`. The list is empty for a stage without
    search, and if the permission to search is missing."""
    try:
        finder = finder_at(site)
        return [] if finder is None else finder.naming(Key(message.id, message.event_type))
    except (ClientError, BotoCoreError, InvalidSecret):  # the page is shown without this part
        return []


def _preview(
    site: Site, item: Mapping[str, Any] | None, message: MessageStatus
) -> tuple[Preview | None, str]:
    """Render the item again, with the template version in the ledger. Return the preview, or the reason why
    rendering fails. For a channel without templates, return neither."""
    if item is None or item["event_type"] not in RENDERED:
        return None, ""
    # Imported here, because a page without content does not need them.
    from mailroom.content.payloads import Payloads
    from mailroom.content.versions import DEPLOYED
    from mailroom_ops.messages.rendered import Samples

    try:
        # A message that is not queued yet gets the current version when it is queued.
        version = message.template_version or (None if message.status in (READY, "scheduled") else DEPLOYED)
        rules = rules_at(site)
        payloads = Payloads(site.client("s3"), rules.payload_bucket)
        samples = Samples(rules.previews(site.client("s3")), rules.default_region, payloads)
        return samples.look({**item, "template_version": version} if version is not None else item)[1], ""
    except (Invalid, Malformed, ClientError, BotoCoreError) as fault:  # the page is shown without this part
        return None, f"{fault}"


def recipients_of(message: MessageStatus) -> list[str]:
    """Return the recipients of a message."""
    return [message.to] if isinstance(message.to, str) else message.to or []


def _json(value: Any) -> Any:
    """Convert a value for JSON: sets to lists, Decimals to floats if that is exact, and others to text."""
    if isinstance(value, Decimal) and Decimal(repr(float(value))) == value:
        return float(value)
    return sorted(value) if isinstance(value, set | frozenset) else str(value)


def _actions(message: MessageStatus, current_time: float) -> list[Action]:
    """Return the actions that may help. Each action checks again whether it is possible."""
    if message.status == READY or message.waits_for:
        return ["cancel"] if cancellation.waits(message, current_time) else []
    if message.status in UNDER_WAY:
        return ["resend", "settle"]
    code = (message.error or {}).get("code")
    # A resend of a message that ended as cancelled would end the same way.
    return ["resend"] if "completedAt" in message.times and code not in CANCELLED else []
