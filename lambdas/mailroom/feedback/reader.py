"""Reads the events in the body of a feedback queue message: removes SNS's envelope, then calls the reader of
the provider that sent the event."""

from collections.abc import Container, Mapping, Sequence
from typing import Any

from msgspec import Struct

from mailroom.errors import Malformed
from mailroom.feedback import keywords
from mailroom.feedback.keywords import KNOWN, Keywords, KeywordText
from mailroom.message.outcome import Event
from mailroom.providers import values
from mailroom.providers.aws_sms import events as aws_sms
from mailroom.providers.resend import events as resend
from mailroom.providers.ses import events as ses
from mailroom.providers.twilio import events as twilio
from mailroom.telemetry import count, logger

VALIDATED = "Successfully validated SNS topic for Amazon SES event publishing."
"""Test message that SES publishes to an SNS topic when the topic becomes the destination of
a configuration set."""
_SUBSCRIPTION_TYPES = {"SubscriptionConfirmation", "UnsubscribeConfirmation"}


FeedbackItem = Event | KeywordText


def read(body: str, topics: Container[str], region: str = "", words: Keywords = KNOWN) -> list[FeedbackItem]:
    """Return the events in the body of a queue message, and texts that people sent, if the text is one of the
    keywords `words`. Events that need no action are not returned, but logged or counted.

    `topics` are the ARNs of the SNS topics whose notifications are accepted. `region` is the country of
    numbers without a country code. Raises Malformed. Neither errors nor log lines quote the body.
    """
    # SNS delivers the test message of SES without an envelope if the subscription uses raw message delivery.
    if body.strip() == VALIDATED:
        return []
    return [*_read(values.decoded("the body", body), topics, region, words)]


def _read(value: Any, topics: Container[str], region: str, words: Keywords) -> Sequence[FeedbackItem]:
    match value:
        case {"source": twilio.SOURCE}:
            return twilio.read(value, region)
        case {"source": resend.SOURCE}:
            return resend.read(value)
        case {"source": keywords.SOURCE}:
            return keywords.read_twilio(value, region)
    payload, published = _unwrapped(value, topics)
    if payload is None:
        return []
    if "inboundMessageId" in payload:
        return keywords.read_aws(payload, published, words, region)
    return _by_type(payload, region)


def _by_type(payload: Mapping[str, Any], region: str) -> list[Event]:
    kind = payload.get("eventType", payload.get("notificationType"))
    if not isinstance(kind, str):
        raise Malformed("is not an event of SES, AWS SMS, Twilio or Resend")
    if kind in ses.READERS:
        return ses.read(kind, payload)
    if kind.startswith(aws_sms.PREFIXES):
        return aws_sms.read(payload, region)
    logger.warning("an event of an unknown type", kind=values.word(kind))
    count("EventsUnknown")
    return []


class _Notification(Struct, frozen=True, rename="pascal"):
    """Envelope that SNS puts around a message."""

    topic_arn: str
    message: str
    timestamp: str = ""
    type: str = "Notification"


def _unwrapped(value: Any, topics: Container[str]) -> tuple[Mapping[str, Any] | None, str]:
    """Return a provider's payload without SNS's envelope, and the envelope's timestamp.

    The payload is None if the notification is about the topic itself. The timestamp is empty for a payload
    without an envelope. Raises Malformed, also if the topic is not in `topics`: anyone with an AWS account
    can create a topic and publish forged events.
    """
    if not isinstance(value, dict):
        raise Malformed("is not a JSON object")
    if "TopicArn" not in value:
        return value, ""
    envelope = values.convert("SNS's envelope", value, _Notification)
    if envelope.topic_arn not in topics:
        raise Malformed("comes from an SNS topic that the stage does not use")
    if envelope.type in _SUBSCRIPTION_TYPES or envelope.message.strip() == VALIDATED:
        logger.info("a notification about the SNS topic itself", kind=values.word(envelope.type))
        return None, ""
    payload = values.decoded("SNS's message", envelope.message)
    if not isinstance(payload, dict):
        raise Malformed("SNS's message is not a JSON object")
    return payload, envelope.timestamp
