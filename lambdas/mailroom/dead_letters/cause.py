"""Explains a dead letter from its body and the ledger: its subject, its cause, and the operator's next
step."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from mailroom.campaigns.queue_bodies import Chunk, Next, Start, chunk_of, collect_body
from mailroom.channels.fax import contract as fax
from mailroom.dead_letters.queue import DeadLetter
from mailroom.errors import Malformed, quantity
from mailroom.message.message import ID_TAG, Key, Reference, decode, key_of
from mailroom.providers.values import decoded


class Subject(Struct, frozen=True):
    """Subject of a dead letter: the message, event or campaign that it is about."""

    kind: Literal["message", "callback", "event", "campaign", "malformed"]
    """`message` if the body is a message that has to be sent. A `callback` or a provider's `event` only
    refers to a message. A `campaign` is a page of an audience, or a chunk of its people. `malformed` is any
    other body."""
    key: Key | None = None
    """Key of the message, if the body contains it."""
    attempt: int = 1
    detail: str = ""
    """Name of the callback, name of the campaign and its run, or the problem of a malformed body."""


def subject_of(dead_letter: DeadLetter) -> Subject:
    """Return the subject of a dead letter. Never raises, even if the body is invalid."""
    try:
        if dead_letter.queue.startswith("feedback-"):
            return Subject("event", _of_event(dead_letter.body))
        if (read := _campaign_reader(dead_letter.queue)) is not None:
            part = read(dead_letter.body)
            return Subject("campaign", detail=f"{part.campaign:.60}, run {part.run:.60}")
        body = decode(dead_letter.body)
        # `webhook_id` distinguishes callbacks only in the webhook queues; in other queues any item may have
        # an attribute of this name.
        if dead_letter.queue.startswith("webhook-") and "webhook_id" in body:
            return Subject("callback", key_of(body), detail=str(body.get("name", ""))[:100])
        item = fax.item_of(body) if dead_letter.queue.startswith("fax-") else body
        attempt = item.get("attempt", 1)
        valid = isinstance(attempt, int) and not isinstance(attempt, bool)
        return Subject("message", key_of(item), attempt if valid else 1)
    except Malformed as fault:
        return Subject("malformed", detail=str(fault))


def _campaign_reader(queue: str) -> Callable[[str], Start | Next | Chunk] | None:
    if queue.startswith("collect-"):
        return collect_body
    return chunk_of if queue.startswith("audience-") else None


def _of_event(body: str) -> Key | None:
    """Return the key of the message in an event, with or without SNS's envelope, or None if the event lacks a
    reference."""
    event = decoded("the body", body)
    if isinstance(event, dict) and isinstance(text := event.get("Message"), str):
        event = decoded("the body", text)
    return _correlated(event) if isinstance(event, dict) else None


def _correlated(event: Mapping[str, Any]) -> Key | None:
    """Return the key from Mailroom's reference in an event: in the field `reference` of a Twilio callback, in
    the context of an SMS by AWS, in a header or tag of SES, or in a tag of Resend."""
    value, event_type = event.get("reference"), "sms"
    match event:
        case {"context": dict(context)}:
            value = context.get("reference")
        case {"mail": dict(mail)}:
            value, event_type = _of_mail(mail), "mail"
        case {"event": {"data": {"tags": dict(tags)}}}:
            value, event_type = tags.get(ID_TAG), "mail"
    reference = Reference.found_in(value) if isinstance(value, str) else None
    return None if reference is None else Key(reference.id, event_type)


def _of_mail(mail: Mapping[str, Any]) -> object:
    headers, tags = mail.get("headers"), mail.get("tags")
    for header in headers if isinstance(headers, list) else ():
        if isinstance(header, dict) and str(header.get("name")).lower() == "x-correlation-id":
            return header.get("value")
    tag = tags.get(ID_TAG) if isinstance(tags, dict) else None
    return tag[0] if isinstance(tag, list) and tag else None


Item = Mapping[str, Any]


class Cause(Struct, frozen=True):
    """Cause of a dead letter, with a code and a sentence."""

    code: str
    message: str
    """Sentence for operators, which ends with the next step."""


_UNRECORDED = Cause(
    "unrecorded", "a provider's event was not recorded; see the log of `feedback`, then put it back"
)
_SUPERSEDED = Cause("superseded", "its attempt has ended, and a later one follows: delete this old copy")
_UNCLAIMED = Cause(
    "unclaimed",
    "its sending has not begun: the function failed before, had too little time left, or did not reach its "
    "tables; see the log of the function, then put it back",
)
_UNKNOWN = Cause(
    "outcome_unknown",
    "its sending began, and no outcome was recorded, so the message may have been sent; see the log of the "
    "sender function, then put it back: the next try looks for evidence first",
)
_SUBMITTED = Cause(
    "submitted", "its provider has accepted it, and has no result yet; put it back to ask for the result"
)

_TROUBLE = "{}; fix the cause, then put it back"
_TROUBLES_IN_DOUBT = {
    "in_doubt": "{}, and it is not resent automatically; ask the provider, then record its outcome, or put "
    "it back to send it once more",
    "no_outcome": "a try ended without an outcome ({}), so the message may have been sent; put it back "
    "when the problem is solved: the next try looks for evidence first",
    "look_up_failed": "the look-up of an earlier try at the provider failed ({}), so the message may have "
    "been sent; put it back when the problem is solved",
}
_TROUBLES = {
    "retry": "not accepted in any of its tries: {}; put it back when the problem is solved",
    "unprepared": "its request could not be prepared ({}); see the sender function's log, then put it back",
    "no_time": "{}; see how long the batches of the sender function take, then put it back",
    **dict.fromkeys(("received_too_often", "restarted", "other_try"), "{}; put it back"),
    **_TROUBLES_IN_DOUBT,
}
"""Sentences by the code in the ledger attribute `trouble`, the reason why a message was not sent."""


def cause_of(dead_letter: DeadLetter, subject: Subject, item: Item) -> Cause:
    """Return the cause of a dead letter. `item` is the ledger item of the subject's message, or empty if the
    message is not in the ledger."""
    match subject.kind:
        case "malformed":
            return Cause(
                "malformed",
                f"not a valid message: {subject.detail}; find the program that sent it, then delete it",
            )
        case "event":
            return _UNRECORDED
        case "campaign":
            return _of_campaign(dead_letter, subject)
        case "callback":
            return _of_callback(subject.detail, item)
    return _settled(subject, item) or _of_message(item)


def _settled(subject: Subject, item: Item) -> Cause | None:
    """Return the cause of a dead letter whose redrive would be useless, or None."""
    finished = int(item.get("attempts", 0))
    if "completedAt" in item:
        return Cause("completed", f"its message is {item.get('status')} already: this is a copy; delete it")
    if finished >= subject.attempt:
        return _SUPERSEDED
    if finished < subject.attempt - 1 and "startedAt" not in item:
        return Cause(
            "unfounded",
            f"the attempt before attempt {subject.attempt} has not ended: the number is wrong, or "
            "its record was deleted; delete the dead letter",
        )
    return None


def _of_message(item: Item) -> Cause:
    trouble = item.get("trouble")
    code = str(trouble.get("code")) if isinstance(trouble, Mapping) else ""
    # Any other trouble is the reason why a later try was not sent, and does not explain the try with the
    # unknown outcome.
    if ("startedAt" in item or "unsettled_tries" in item) and code not in _TROUBLES_IN_DOUBT:
        return _UNKNOWN
    if isinstance(trouble, Mapping):
        sentence = _TROUBLES.get(code, _TROUBLE)
        return Cause(code, sentence.format(str(trouble.get("message", "")).rstrip(".")))
    return _SUBMITTED if "provider_id" in item else _UNCLAIMED


def _of_campaign(dead_letter: DeadLetter, subject: Subject) -> Cause:
    if dead_letter.undelivered:
        sentence = f"EventBridge Scheduler could not send it: {dead_letter.undelivered}"
        return Cause("undelivered", f"{sentence}; fix the cause, then put it back")
    if dead_letter.queue.startswith("collect-"):
        sentence = f"a page of campaign {subject.detail}, was not collected; see `mailroom campaign status`"
        return Cause("uncollected", f"{sentence}; fix the cause, then put it back, or start the run again")
    sentence = f"people of campaign {subject.detail}, were not all composed; see the log of `compose`"
    return Cause(
        "uncomposed", f"{sentence}, fix the cause, then put it back: no person gets a second message"
    )


def _of_callback(name: str, item: Item) -> Cause:
    results = item.get("callbacks")
    result = results.get(name) if isinstance(results, Mapping) else None
    if not isinstance(result, Mapping):
        return Cause(
            "callback_unsent",
            f"callback {name} has no recorded result; see the log of send-webhook, then put it back",
        )
    answer = "no answer" if result.get("code") is None else f"HTTP {result['code']}"
    reason = f" ({result['reason']})" if "reason" in result else ""
    tries = result.get("tries")
    after = f" in {quantity(tries, 'try', 'tries')}" if isinstance(tries, int) else ""
    return Cause(
        "callback_refused",
        f"callback {name} was not accepted{after}, the last got {answer}{reason}; "
        "fix the endpoint, then put it back",
    )


class ExplainedDeadLetter(Struct, frozen=True):
    """A dead letter with its explanation."""

    dead_letter: DeadLetter
    subject: Subject
    cause: Cause
    item: dict[str, Any]
    """Ledger item of the subject's message; empty if the message is not in the ledger."""


def explain(
    read: Callable[[Iterable[Key]], Mapping[Key, dict[str, Any]]], dead_letters: Sequence[DeadLetter]
) -> Iterator[ExplainedDeadLetter]:
    """Yield each dead letter with its explanation. `read` returns the present ledger items of messages."""
    subjects = [subject_of(dead_letter) for dead_letter in dead_letters]
    keys = (subject.key for subject in subjects if subject.key is not None)
    items = read(keys)
    for dead_letter, subject in zip(dead_letters, subjects, strict=True):
        item = items.get(subject.key, {}) if subject.key is not None else {}
        yield ExplainedDeadLetter(dead_letter, subject, cause_of(dead_letter, subject, item), item)
