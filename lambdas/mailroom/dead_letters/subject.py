"""What a dead letter is about: told from its body, which has its queue's form."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

from mailroom.campaigns.bodies import Chunk, Next, Start, chunk_of, collect_body
from mailroom.channels.fax import contract as fax
from mailroom.dead_letters.dead_letter import Letter
from mailroom.errors import Malformed
from mailroom.message.message import Key, Reference, decode, key_of, scheduled

_DEEP = 5
"""Envelopes around an event: an array, Lambda's records, SNS's notification, the event."""


class Subject(Struct, frozen=True):
    """`key` is None where there is no message to name. A `message` is asked for by the letter itself. A
    `callback` and a provider's `event` only tell of one that is on its way or over: they do not mark it, and
    no redrive of theirs would ever clear the mark. A `campaign` is a page of its audience, or people of it.
    """

    kind: Literal["message", "callback", "event", "campaign", "malformed"]
    key: Key | None = None
    attempt: int = 1
    detail: str = ""
    """A callback's name in the ledger item, a campaign and its run, or what is wrong with a body."""


def subject_of(letter: Letter) -> Subject:
    """What the letter is about. Raises nothing: a body may be anything."""
    try:
        if letter.queue.startswith("feedback-"):
            return Subject("event", _of_event(letter.body))
        if (read := _of_campaign(letter.queue)) is not None:
            part = read(letter.body)
            return Subject("campaign", detail=f"{part.campaign:.60}, run {part.run:.60}")
        body = scheduled(letter.body) if letter.queue.startswith("scheduled-") else decode(letter.body)
        # In other queues these are names like any other, and an item may have them.
        if letter.queue.startswith("webhook-") and "webhook_id" in body:
            return Subject("callback", key_of(body), detail=str(body.get("name", ""))[:100])
        item = fax.item_of(body) if letter.queue.startswith("fax-") else body
        attempt = item.get("attempt", 1)
        known = isinstance(attempt, int) and not isinstance(attempt, bool)
        return Subject("message", key_of(item), attempt if known else 1)
    except Malformed as fault:
        return Subject("malformed", detail=str(fault))


def _of_campaign(queue: str) -> Callable[[str], Start | Next | Chunk] | None:
    if queue.startswith("collect-"):
        return collect_body
    return chunk_of if queue.startswith("audience-") else None


def _of_event(body: str) -> Key | None:
    """The message that a body of the feedback queue tells of; None where that is none, or not just one."""
    keys = {key for key in map(_correlated, _events(_loaded(body), _DEEP)) if key is not None}
    return keys.pop() if len(keys) == 1 else None


def _loaded(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise Malformed("the body is not JSON") from None


def _events(value: Any, deep: int) -> Iterator[Mapping[str, Any]]:
    """The events within envelopes."""
    if isinstance(value, list) and deep:
        for each in value:
            yield from _events(each, deep - 1)
    elif isinstance(value, dict):
        records, text = value.get("Records"), value.get("Message", value.get("Sns"))
        if isinstance(records, list | dict) and deep:
            yield from _events(records, deep - 1)
        elif isinstance(text, dict) and deep:
            yield from _events(text, deep - 1)
        elif isinstance(text, str) and deep:
            yield from _events(_loaded(text), deep - 1)
        else:
            yield value


def _correlated(event: Mapping[str, Any]) -> Key | None:
    """The message of one event: Twilio's carry our reference, AWS's SMS events our context, SES's our header
    or tag."""
    said, event_type = event.get("reference"), "sms"
    if isinstance(event.get("context"), dict):
        said = event["context"].get("reference")
    elif isinstance(event.get("mail"), dict):
        said, event_type = _of_mail(event["mail"]), "mail"
    try:
        return Key(Reference.read(said).id, event_type) if isinstance(said, str) else None
    except Malformed:
        return None


def _of_mail(mail: Mapping[str, Any]) -> object:
    headers, tags = mail.get("headers"), mail.get("tags")
    for each in headers if isinstance(headers, list) else ():
        if isinstance(each, dict) and str(each.get("name")).lower() == "x-correlation-id":
            return each.get("value")
    tag = tags.get("correlation") if isinstance(tags, dict) else None
    return tag[0] if isinstance(tag, list) and tag else None
