"""Pages that act on a message, each after a question: send again, record an outcome, cancel."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NoReturn, get_args

from msgspec import field

from mailroom.api.messages import States
from mailroom_ops.console.pages.message import VERBS, Action, find, recipients_of
from mailroom_ops.console.pages.messages import deployed_at, rules_at
from mailroom_ops.console.site import Answer, Goto, Request, Shown, Site, View, link
from mailroom_ops.messages.cancel import Canceller, states_of
from mailroom_ops.repair.again import SendAgain
from mailroom_ops.repair.judge import PATIENCE_SECONDS, SENTENCES
from mailroom_ops.repair.repairs import Repairs, Word
from mailroom_ops.repair.resender import FORCED, SUPPRESSED, Resender
from mailroom_ops.repair.settle import FOLLOWS
from mailroom_ops.shared.refusals import Refused
from mailroom_ops.shared.selected_messages import MessageRef
from mailroom_ops.shared.stage_queues import DeployedStage

_OUTCOMES: dict[Word, str] = {"sent": "Record it as sent", "failed": "Record it as failed"}


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
    lift = recipients_of(find(site, request)[0]) if message.why.endswith(SUPPRESSED) else []
    return _plan(request, "resend", sentences, hidden, force=FORCED in message.why, lift=lift)


def settle(site: Site, request: Request) -> Answer:
    """Show the effect of an outcome that a person records for a message, and then record it."""
    deployed = deployed_at(site)
    repairs = Repairs.of(deployed, older_than=PATIENCE_SECONDS, confirmed=True)
    digest = _seen(deployed, request)  # read first, so that a change during the later reads is noticed
    ((judgement,),) = repairs.judged(repairs.keys_of([_ref(request)]))
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


def _ref(request: Request) -> MessageRef:
    return MessageRef(request["id"], request["channel"] or None)


def again_at(site: Site, *, force: bool) -> SendAgain:
    """Return the act that sends messages of the stage again. Raises NotDeployed, and botocore's errors."""
    deployed, look = deployed_at(site), rules_at(site).previews(site.client("s3")).look
    # A person who sends a message again confirms that it was never sent, if the ledger does not know it.
    repairs = partial(Repairs.of, deployed, older_than=PATIENCE_SECONDS, confirmed=True)
    return SendAgain(deployed, Resender(deployed, look, force=force), repairs)


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


def _plan(
    request: Request,
    action: Action,
    sentences: list[str],
    hidden: Mapping[str, str] | None,
    **options: Any,
) -> Answer:
    """Show the question before an action: see MessageAction."""
    verb = VERBS[action]
    return Shown(MessageAction(verb, sentences, hidden, **options), f"{verb}: {request['id']}")


def _done(request: Request, action: Action) -> Answer:
    return Goto(link("/message", id=request["id"], channel=request["channel"], done=action))


def _refuse(request: Request, action: Action, reason: str) -> NoReturn:
    raise Refused(f"{request['id']}: this click on {action} changed nothing: {reason}.")


def _require_unchanged(request: Request, action: Action, digest: str) -> None:
    """Raise Refused if the message has changed since the page with the form was shown."""
    if digest != request["seen"]:
        _refuse(request, action, "it has changed since it was shown; look again")
