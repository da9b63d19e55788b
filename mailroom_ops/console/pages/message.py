"""Pages of a message: its history, status, request and content, and the actions on it."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal, NoReturn, get_args

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import field

from mailroom.api.messages import States
from mailroom.channels.contracts import CHANNELS
from mailroom.channels.preview import Preview
from mailroom.content.payloads import Payloads
from mailroom.content.versions import DEPLOYED
from mailroom.errors import Invalid, InvalidSecret, Malformed
from mailroom.ledger import cancellation
from mailroom.ledger.status_reader import READY, LedgerReader, MessageStatus, of_ledger
from mailroom.message.message import Key
from mailroom_ops.campaigns.dry_run import Samples
from mailroom_ops.console.pages.messages import again_at, deployed_at, finder_at, rules_at
from mailroom_ops.console.site import Answer, Frame, Goto, Request, Shown, Site, View, link
from mailroom_ops.messages.advice import CANCELLED, advice, buttons
from mailroom_ops.messages.cancel import Canceller, states_of
from mailroom_ops.messages.items import attributes_of, text_of
from mailroom_ops.messages.search import row_of
from mailroom_ops.messages.status import MessageView, reader_of, titled, view_of
from mailroom_ops.messages.timeline import TRIED, Step, last_try, meaning, timeline
from mailroom_ops.messages.waiting import turn_of
from mailroom_ops.repair.judge import PATIENCE_SECONDS, SENTENCES
from mailroom_ops.repair.repairs import Repairs, Word
from mailroom_ops.repair.resender import FORCED, SUPPRESSED
from mailroom_ops.repair.settle import FOLLOWS
from mailroom_ops.shared.deeds import Deed, thing_of
from mailroom_ops.shared.screen import Refused
from mailroom_ops.shared.selected_messages import MessageRef
from mailroom_ops.shared.stage_queues import DeployedStage

RENDERED = tuple(name for name, each in CHANNELS.items() if each.rendered)
"""Channels whose content is rendered from a template; the items of others have the whole content."""
UNDER_WAY = ("scheduled", "sending", "retrying")
Action = Literal["resend", "settle", "cancel"]
_OUTCOMES: dict[Word, str] = {"sent": "Record it as sent", "failed": "Record it as failed"}
_VERBS: dict[Action, str] = {"resend": "Send again", "settle": "Record its outcome", "cancel": "Cancel"}
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


class MessageAction(View, frozen=True):
    """Values of the question before an action."""

    action: str
    sentences: list[str]
    hidden: Mapping[str, str] | None
    """Hidden fields of the form; None if the action is not possible."""
    force: bool = False
    """Whether the action is possible with `--force`."""
    lift: Sequence[str] = ()
    """Recipients whose suppression or opt-out has to be removed first."""
    outcomes: Mapping[Word, str] = field(default_factory=dict)
    """Buttons of the outcomes that can be recorded."""


class MessageReceipt(View, frozen=True):
    """Values of the receipt of a delivered fax."""

    fax: MessageStatus
    document: str
    """URL or object of the PDF, without a signature."""


def show(site: Site, request: Request) -> Answer:
    """Show the message of an id, or a choice if several channels have the id."""
    messages = _find(site, request)
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
    steps = advice(message, buttons(site.stage), moment, view.since, deleted=item is None, turn=turn)
    complete = item is not None and not request.update
    preview, problem = _preview(site, item, message) if complete else (None, "")
    values = Message(
        view=view,
        recipients=_recipients(message),
        campaign=message.campaign or "",
        followed_by=_followed_by(site, message),
        advice=list(steps),
        listed=_recipients(message) if message.status in _LISTED and not message.recipients else [],
        meaning=meaning(message),
        steps=(life := timeline(message, moment)),
        folded=last_try(life),
        source=json.dumps(item, indent=2, ensure_ascii=False, default=_json) if complete else None,
        preview=preview,
        problem=problem,
        variables={
            field: text_of(message.event_type, field, value)
            for field, value in (item or {}).items()
            if not attributes_of(message.event_type).known(field)
        },
        of_template=titled(message.template or "", message.template_version),
        topic=f"{(item or {}).get('topic') or ''}",
        actions={action: _VERBS[action] for action in _actions(message, site.clock())},
        deeds=[] if request.update else site.deeds_on(thing_of(message)),
        copyable=item is not None,
        done=_DONE.get(request["done"], ""),
    )
    return Shown(values, row_of(message).headline)


def frame(site: Site, request: Request) -> Answer:
    """Return a mail's HTML, for the frame on its page."""
    messages = _find(site, request)
    item = reader_at(site).item(messages[0].id, messages[0].event_type) if messages else None
    preview = _preview(site, item, messages[0])[0] if messages else None
    return Frame((preview and preview.html) or "")


def resend(site: Site, request: Request) -> Answer:
    """Show the effect of `resend`, and then resend the message."""
    force = bool(request["force"])
    deployed, act = deployed_at(site), again_at(site, force=force)
    digest = _seen(deployed, request)  # read first, so that a change during the later reads is noticed
    (message,) = act.evaluate([_ref(request)])
    ready = message.result == "ready"
    if request.form is not None:
        if not ready:
            _refuse(request, "resend", message.why)
        _require_unchanged(request, "resend", digest)
        (sent,) = act.send([message], request["why"])
        if sent.result == "unqueued":
            raise Refused(f"{request['id']}: {sent.why}.")
        return _done(request, "resend") if sent.result == "resent" else _refuse(request, "resend", sent.why)
    reason = message.why.removesuffix(FORCED).removesuffix(SUPPRESSED)
    sentences = [f"{reason[:1].upper()}{reason[1:]}."]
    if message.attempt is not None:
        content = "its old content" if message.event_type == "fax" else "its present content"
        sentences.append(f"It is sent again with {content}, as try {message.attempt}.")
    if message.may_arrive_twice:
        sentences.append("It may arrive twice.")
    hidden = {"seen": digest, "force": "1" * force} if ready else None
    lift = _recipients(_find(site, request)[0]) if message.why.endswith(SUPPRESSED) else []
    return _plan(request, "resend", sentences, hidden, force=FORCED in message.why, lift=lift)


def settle(site: Site, request: Request) -> Answer:
    """Show the effect of an outcome that a person records for a message, and then record it."""
    deployed = deployed_at(site)
    repairs = Repairs.of(deployed, older_than=PATIENCE_SECONDS, confirmed=True)
    digest = _seen(deployed, request)  # read first, so that a change during the later reads is noticed
    ((judgement,),) = repairs.judged(repairs.named([_ref(request)]))
    diagnosis, message = judgement
    in_doubt = {"startedAt", "unsettled_tries", "provider_id"} & (message.ledger or {}).keys()
    # A message that is recorded as sent by mistake is lost, so an outcome can be recorded only if it is in
    # doubt, or if the message cannot be sent again.
    possible = "end" in diagnosis.cures and bool(in_doubt or diagnosis.cures == ("end",))
    obstacle = diagnosis.not_ended or "it was not sent: send it again"
    if request.form is not None:
        if not possible or request["outcome"] not in get_args(Word):
            _refuse(request, "settle", obstacle)
        _require_unchanged(request, "settle", digest)
        problem = repairs.end(judgement, "sent" if request["outcome"] == "sent" else "failed", request["why"])
        return _refuse(request, "settle", problem) if problem else _done(request, "settle")
    sentences = [f"It is {message.key.event_type} {request['id']}: {SENTENCES[diagnosis.state]}."]
    if not possible:
        return _plan(request, "settle", [*sentences, f"Its outcome cannot be recorded: {obstacle}."], None)
    sentences += [
        "First ask its provider or its recipient whether it was sent. Later evidence corrects the outcome.",
        *(f"As {word}: {follows}" for word, follows in FOLLOWS.items()),
    ]
    return _plan(request, "settle", sentences, {"seen": digest}, outcomes=_OUTCOMES)


def cancel(site: Site, request: Request) -> Answer:
    """Show the effect of a cancel, and then cancel the message as the HTTP API does."""
    canceller, digest = Canceller(states_at(site), site.clock, site.deeds), _seen(deployed_at(site), request)
    (message,) = canceller.evaluate([_ref(request)])
    if request.form is not None:
        if message.result == "ready":
            _require_unchanged(request, "cancel", digest)
            (message,) = canceller.send([message], request["why"])
        if message.result != "cancelled":
            _refuse(request, "cancel", message.why)
        return _done(request, "cancel")
    if message.result != "ready":
        return _plan(request, "cancel", [f"{message.why.capitalize()}."], None)
    sentences = [
        "It ends as cancelled, and is not sent. If it has a callback URL, a callback is sent to the URL.",
        "To send it after all, put it under a new id.",
    ]
    return _plan(request, "cancel", sentences, {"seen": digest})


def receipt(site: Site, request: Request) -> Answer:
    """Show the ledger's facts about a delivered fax on a page to print. Raises Refused for any other
    message."""
    item = next(iter(deployed_at(site).items("ledger", MessageRef(request["id"], "fax"))), {})
    if item.get("status") != "delivered":
        raise Refused(f"{request['id']!r:.200} is not a delivered fax, so it has no receipt.")
    document = f"{item.get('pdf_url') or item.get('payload_ref', '')}".partition("?")[0]
    return Shown(MessageReceipt(of_ledger(item), document), f"Receipt of the fax {item['id']}")


def _ref(request: Request) -> MessageRef:
    return MessageRef(request["id"], request["channel"] or None)


def _find(site: Site, request: Request) -> list[MessageStatus]:
    """Return the messages with the id of the request, of all channels if the request names no channel."""
    return reader_at(site).find(request["id"], request["channel"] or None)


def reader_at(site: Site) -> LedgerReader:
    """Return the reader of the stage's messages by their ids."""
    return site.kept("reader", lambda: reader_of(site.session, site.stage))


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
    try:
        # A message that is not queued yet gets the current version when it is queued.
        version = message.template_version or (None if message.status in (READY, "scheduled") else DEPLOYED)
        rules = rules_at(site)
        payloads = Payloads(site.client("s3"), rules.payload_bucket)
        samples = Samples(rules.previews(site.client("s3")), rules.default_region, payloads)
        return samples.look({**item, "template_version": version} if version is not None else item)[1], ""
    except (Invalid, Malformed, ClientError, BotoCoreError) as fault:  # the page is shown without this part
        return None, f"{fault}"


def _recipients(message: MessageStatus) -> list[str]:
    return [message.to] if isinstance(message.to, str) else message.to or []


def _json(value: Any) -> Any:
    """Convert a value for JSON: sets to lists, Decimals to floats if that is exact, and others to text."""
    if isinstance(value, Decimal) and Decimal(repr(float(value))) == value:
        return float(value)
    return sorted(value) if isinstance(value, set | frozenset) else str(value)


def states_at(site: Site) -> States:
    """Return the object that cancels the stage's messages."""
    return site.kept("states", lambda: states_of(site.session, deployed_at(site), site.clock))


def _seen(deployed: DeployedStage, request: Request) -> str:
    """Return a digest of the message's items in both tables."""
    ref = _ref(request)
    items = [*deployed.items("ledger", ref), {}, *deployed.items("mailbox", ref), {}]
    document = json.dumps(
        items, sort_keys=True, default=lambda value: sorted(value) if isinstance(value, set) else repr(value)
    )
    return hashlib.sha256(document.encode()).hexdigest()


def _actions(message: MessageStatus, current_time: float) -> list[Action]:
    """Return the actions that may help. Each action checks again whether it is possible."""
    if message.status == READY or message.waits_for:
        return ["cancel"] if cancellation.waits(message, current_time) else []
    if message.status in UNDER_WAY:
        return ["resend", "settle"]
    code = (message.error or {}).get("code")
    # A resend of a message that ended as cancelled would end the same way.
    return ["resend"] if "completedAt" in message.times and code not in CANCELLED else []


def _plan(
    request: Request,
    action: Action,
    sentences: list[str],
    hidden: Mapping[str, str] | None,
    **options: Any,
) -> Answer:
    """Show the question before an action: see MessageAction."""
    verb = _VERBS[action]
    return Shown(MessageAction(verb, sentences, hidden, **options), f"{verb}: {request['id']}")


def _done(request: Request, action: Action) -> Answer:
    return Goto(link("/message", id=request["id"], channel=request["channel"], done=action))


def _refuse(request: Request, action: Action, reason: str) -> NoReturn:
    raise Refused(f"{request['id']}: this click on {action} changed nothing: {reason}.")


def _require_unchanged(request: Request, action: Action, digest: str) -> None:
    """Raise Refused if the message has changed since the page with the form was shown."""
    if digest != request["seen"]:
        _refuse(request, action, "it has changed since it was shown; look again")
