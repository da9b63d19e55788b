"""Reads a record of the feedback queue into events: out of its envelopes, by its provider's reader."""

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from mailroom.errors import MAX_DEPTH, Malformed, too_deep
from mailroom.feedback import aws_sms, keywords, resend, ses, twilio, values
from mailroom.feedback.keywords import KNOWN, Keywords, KeywordText
from mailroom.feedback.ses import READERS
from mailroom.message.outcome import Event
from mailroom.telemetry import count, logger

VALIDATED = "Successfully validated SNS topic for Amazon SES event publishing."
"""What SES publishes once, to a topic that becomes the destination of a configuration set."""
_OF_THE_SUBSCRIPTION = {"SubscriptionConfirmation", "UnsubscribeConfirmation"}


FeedbackItem = Event | KeywordText


class PartlyMalformed(Malformed):
    """A part of a batch cannot be understood; `events` are those of the rest, and good."""

    def __init__(self, fault: Malformed, events: list[FeedbackItem]) -> None:
        super().__init__(str(fault))
        self.events = events


def read(body: str, topics: Container[str], region: str = "", words: Keywords = KNOWN) -> list[FeedbackItem]:
    """The events in a body, and the texts to us that are one of `words`; [] for what needs no action, which
    is logged or counted.

    `topics` are the SNS topics that are believed, `region` is where a number without a country belongs.
    Raises Malformed for what cannot be understood, PartlyMalformed where that is a part of a batch. No fault
    and no log line quotes the body.
    """
    events: list[FeedbackItem] = []
    fault: Malformed | None = None
    for each in contents(body):
        try:
            events += _read(each, topics, region, words)
        except Malformed as malformed:
            fault = fault or malformed
    if fault is not None:
        raise PartlyMalformed(fault, events) if events else fault
    return events


def _read(value: Any, topics: Container[str], region: str, words: Keywords) -> Sequence[FeedbackItem]:
    match value:
        case {"source": twilio.SOURCE}:
            return twilio.read(value, region)
        case {"source": resend.SOURCE}:
            return resend.read(value)
        case {"source": keywords.SOURCE}:
            return keywords.read_twilio(value, region)
    message, sent = opened(value, topics)
    if message is None:
        return []
    if "inboundMessageId" in message:
        return keywords.read_aws(message, sent, words, region)
    return _by_type(message, region)


def _by_type(words: Mapping[str, Any], region: str) -> list[Event]:
    kind = words.get("eventType", words.get("notificationType"))
    if not isinstance(kind, str):
        raise Malformed("neither an event of SES nor one of an SMS nor a callback of Twilio")
    if kind in READERS:
        return ses.read(kind, words)
    if kind.startswith(aws_sms.PREFIXES):
        return aws_sms.read(words, region)
    logger.warning("an event of a type that is not known", kind=values.word(kind))
    count("EventsUnknown")
    return []


class _Notification(Struct, frozen=True, rename="pascal"):
    topic_arn: str
    message: str
    timestamp: str = ""
    type: str = "Notification"  # Lambda's own form has no type that matters


def contents(body: str) -> Iterator[Any]:
    """The single things that a body holds: itself, the elements of an array, or the notifications of Lambda's
    SNS event. Raises Malformed for what is no JSON, and for nothing at all."""
    if body.strip() == VALIDATED:  # as a queue gets it with raw delivery
        return
    value = _json("the body", body)
    elements = value if isinstance(value, list) else [value]
    if not elements:
        raise Malformed("the body is empty")
    for each in elements:
        yield from _notifications(each)


def _notifications(value: Any) -> Iterator[Any]:
    records = value.get("Records") if isinstance(value, dict) else None
    if not isinstance(records, list) or not records:
        yield value
        return
    for each in records:
        yield each.get("Sns") if isinstance(each, dict) else each


def opened(value: Any, topics: Container[str]) -> tuple[Mapping[str, Any] | None, str]:
    """A provider's words, without SNS's envelope where there is one, and when SNS got them, as it writes
    that; None: SNS or SES speaks of the topic itself. Raises Malformed, also for a topic that is not among
    `topics`: anybody may have one."""
    if not isinstance(value, dict):
        raise Malformed("not a JSON object")
    if "TopicArn" not in value:
        return value, ""
    envelope = values.convert("SNS's envelope", value, _Notification)
    if envelope.topic_arn not in topics:
        raise Malformed("from an SNS topic that is not one of the stage's")
    if envelope.type in _OF_THE_SUBSCRIPTION or envelope.message.strip() == VALIDATED:
        logger.info("a notice about the topic itself", kind=values.word(envelope.type))
        return None, ""
    words = _json("SNS's message", envelope.message)
    if not isinstance(words, dict):
        raise Malformed("SNS's message is not a JSON object")
    return words, envelope.timestamp


def _json(name: str, text: str) -> Any:
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise Malformed(f"{name} is not JSON") from None
    if too_deep(text, value):
        raise Malformed(f"{name} has over {MAX_DEPTH} levels of lists and objects")
    return value
