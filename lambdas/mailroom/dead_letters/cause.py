"""What a dead letter is about, why it is dead, and what to do: by its body and the ledger."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

from msgspec import Struct

from mailroom.campaigns.bodies import Chunk, Next, Start, chunk_of, collect_body
from mailroom.channels.fax import contract as fax
from mailroom.dead_letters.queue import DeadLetter
from mailroom.errors import Malformed
from mailroom.feedback.values import decoded
from mailroom.message.message import ID_TAG, Key, Reference, decode, key_of


class Subject(Struct, frozen=True):
    """`key` is None where there is no message to name. A `message` is asked for by the dead letter itself. A
    `callback` and a provider's `event` are about one that is on its way or over: they do not mark it, and
    no redrive of theirs would ever clear the mark. A `campaign` is a page of its audience, or people of it.
    """

    kind: Literal["message", "callback", "event", "campaign", "malformed"]
    key: Key | None = None
    attempt: int = 1
    detail: str = ""
    """A callback's name in the ledger item, a campaign and its run, or what is wrong with a body."""


def subject_of(dead_letter: DeadLetter) -> Subject:
    """What the dead letter is about. Raises nothing: a body may be anything."""
    try:
        if dead_letter.queue.startswith("feedback-"):
            return Subject("event", _of_event(dead_letter.body))
        if (read := _campaign_reader(dead_letter.queue)) is not None:
            part = read(dead_letter.body)
            return Subject("campaign", detail=f"{part.campaign:.60}, run {part.run:.60}")
        body = decode(dead_letter.body)
        # In other queues these are names like any other, and an item may have them.
        if dead_letter.queue.startswith("webhook-") and "webhook_id" in body:
            return Subject("callback", key_of(body), detail=str(body.get("name", ""))[:100])
        item = fax.item_of(body) if dead_letter.queue.startswith("fax-") else body
        attempt = item.get("attempt", 1)
        known = isinstance(attempt, int) and not isinstance(attempt, bool)
        return Subject("message", key_of(item), attempt if known else 1)
    except Malformed as fault:
        return Subject("malformed", detail=str(fault))


def _campaign_reader(queue: str) -> Callable[[str], Start | Next | Chunk] | None:
    if queue.startswith("collect-"):
        return collect_body
    return chunk_of if queue.startswith("audience-") else None


def _of_event(body: str) -> Key | None:
    """Return the message that a body of the feedback queue is about, or None; SNS's envelope is optional."""
    event = decoded("the body", body)
    if isinstance(event, dict) and isinstance(text := event.get("Message"), str):
        event = decoded("the body", text)
    return _correlated(event) if isinstance(event, dict) else None


def _correlated(event: Mapping[str, Any]) -> Key | None:
    """The message of one event: Twilio's carry our reference, AWS's SMS events our context, SES's our header
    or tag, Resend's our tag."""
    said, event_type = event.get("reference"), "sms"
    match event:
        case {"context": dict(context)}:
            said = context.get("reference")
        case {"mail": dict(mail)}:
            said, event_type = _of_mail(mail), "mail"
        case {"event": {"data": {"tags": dict(tags)}}}:
            said, event_type = tags.get(ID_TAG), "mail"
    reference = Reference.found_in(said) if isinstance(said, str) else None
    return None if reference is None else Key(reference.id, event_type)


def _of_mail(mail: Mapping[str, Any]) -> object:
    headers, tags = mail.get("headers"), mail.get("tags")
    for each in headers if isinstance(headers, list) else ():
        if isinstance(each, dict) and str(each.get("name")).lower() == "x-correlation-id":
            return each.get("value")
    tag = tags.get(ID_TAG) if isinstance(tags, dict) else None
    return tag[0] if isinstance(tag, list) and tag else None


Item = Mapping[str, Any]


class Cause(Struct, frozen=True):
    """For programs, and for people: the sentence ends with what is to be done."""

    code: str
    message: str


_UNRECORDED = Cause(
    "unrecorded", "a provider's event did not get into the ledger; see the log of feedback, then put it back"
)
_SUPERSEDED = Cause("superseded", "a later attempt at its message has begun: this is a stale copy; delete it")
_UNCLAIMED = Cause(
    "unclaimed",
    "no worker has claimed it: its function failed before it could, or did not reach the ledger; "
    "see the log of its function, then put it back",
)
_UNKNOWN = Cause(
    "outcome_unknown",
    "a worker claimed it and did not say what became of it, so it may have been sent; see the log of its "
    "sender, then put it back: the next worker looks for evidence first",
)
_UNSENT = Cause(
    "unsent", "every worker gave it back unsent and left no word why; see its sender's log, then put it back"
)

_TROUBLE = "{}; fix that, then put it back"
_TROUBLES_IN_DOUBT = {
    "in_doubt": "{}, and it is not sent again by itself; ask its provider, then end it, or put it back to "
    "send it once more",
    "no_outcome": "a try ended without an outcome ({}), so it may have been sent; put it back when "
    "that is over: the next worker looks for evidence first",
    "look_up_failed": "its provider could not be asked about an earlier try ({}), so it may have been sent; "
    "put it back when that is over",
}
_TROUBLES = {
    "retry": "not taken for as long as it may wait: {}; put it back when that is over",
    "unprepared": "it could not be made ready ({}); see the log of its sender, then put it back",
    **_TROUBLES_IN_DOUBT,
}
"""Causes by the code of what kept a message from being sent."""


def cause_of(dead_letter: DeadLetter, subject: Subject, item: Item) -> Cause:
    """`item` is the ledger's, of the message that the dead letter is about ({}: there is none)."""
    match subject.kind:
        case "malformed":
            return Cause(
                "malformed", f"no message of ours: {subject.detail}; find who sent it, then delete it"
            )
        case "event":
            return _UNRECORDED
        case "campaign":
            return _of_campaign(dead_letter, subject)
        case "callback":
            return _of_callback(subject.detail, item)
    return _settled(subject, item) or _of_message(item)


def _settled(subject: Subject, item: Item) -> Cause | None:
    """Why a redrive would do nothing; None where it would."""
    ended = int(item.get("attempts", 0))
    if "completedAt" in item:
        return Cause("completed", f"its message is {item.get('status')} already: this is a copy; delete it")
    if ended >= subject.attempt:
        return _SUPERSEDED
    if ended < subject.attempt - 1 and "startedAt" not in item:
        return Cause(
            "unfounded",
            f"no attempt that has ended leads up to attempt {subject.attempt}: that number is made up, or "
            "the ledger's item was erased; delete it",
        )
    return None


def _of_message(item: Item) -> Cause:
    trouble = item.get("trouble")
    code = str(trouble.get("code")) if isinstance(trouble, Mapping) else ""
    # Any other trouble kept a later try from being sent, and says nothing of the one in doubt.
    if ("startedAt" in item or "unsettled_tries" in item) and code not in _TROUBLES_IN_DOUBT:
        return _UNKNOWN
    if isinstance(trouble, Mapping):
        sentence = _TROUBLES.get(code, _TROUBLE)
        return Cause(code, sentence.format(str(trouble.get("message", "")).rstrip(".")))
    return _UNSENT if item.get("status") == "sending" else _UNCLAIMED


def _undelivered(dead_letter: DeadLetter) -> Cause:
    # SQS did not bring it here, and so knows no queue that it came from.
    return Cause(
        "undelivered",
        f"EventBridge Scheduler could not send it: {dead_letter.undelivered}; fix that, then put it back",
    )


def _of_campaign(dead_letter: DeadLetter, subject: Subject) -> Cause:
    if dead_letter.undelivered:
        return _undelivered(dead_letter)
    if dead_letter.queue.startswith("collect-"):
        sentence = (
            f"a page of campaign {subject.detail}, was not collected; `mailroom campaign status` says why"
        )
        return Cause("uncollected", f"{sentence}; fix it, then put it back, or start the run again")
    sentence = f"people of campaign {subject.detail}, were not all composed; see the log of compose"
    return Cause("uncomposed", f"{sentence}, fix it, then put it back: nobody gets a second message")


def _of_callback(name: str, item: Item) -> Cause:
    results = item.get("callbacks")
    result = results.get(name) if isinstance(results, Mapping) else None
    if not isinstance(result, Mapping):
        return Cause(
            "callback_unsent",
            f"callback {name} was never answered for; see the log of send-webhook, then put it back",
        )
    answer = "no answer" if result.get("code") is None else f"HTTP {result['code']}"
    why = f" ({result['reason']})" if "reason" in result else ""
    return Cause(
        "callback_refused",
        f"callback {name} was not taken in {result.get('tries')} tries, the last got {answer}{why}; "
        "fix the endpoint, then put it back",
    )
