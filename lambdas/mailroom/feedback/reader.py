"""Reads the events in the body of a feedback queue message: removes SNS's envelope, then calls the reader of
the provider that sent the event."""

from collections.abc import Callable, Container, Mapping, Sequence
from pkgutil import resolve_name
from typing import Any

from msgspec import Struct

from mailroom.errors import Malformed
from mailroom.providers import built_in, values
from mailroom.providers.keywords import KNOWN, Keywords
from mailroom.providers.received import FeedbackItem, Received
from mailroom.telemetry import count, logger

Reader = Callable[[Received], Sequence[FeedbackItem] | None]
VALIDATED = "Successfully validated SNS topic for Amazon SES event publishing."
"""Test message that SES publishes to an SNS topic when the topic becomes the destination of
a configuration set."""
_SUBSCRIPTION_TYPES = {"SubscriptionConfirmation", "UnsubscribeConfirmation"}


_PROVIDERS = built_in().values()
READERS: dict[str, Reader] = {
    source: resolve_name(reader) for each in _PROVIDERS for source, reader in each.events.items()
}
"""Functions that read a queue message's payload, by the value of `source` that their provider's function
writes into the message."""
TOPIC_READERS: list[Reader] = [resolve_name(each.topic_events) for each in _PROVIDERS if each.topic_events]
"""Functions that read a payload from the stage's topic. They return None for payloads of other providers."""


def read(body: str, topics: Container[str], region: str = "", words: Keywords = KNOWN) -> list[FeedbackItem]:
    """Return the events in the body of a queue message, and texts that people sent, if the text is one of the
    keywords `words`. Events that need no action are not returned, but logged or counted.

    `topics` are the ARNs of the SNS topics whose notifications are accepted. `region` is the country of
    numbers without a country code. Raises Malformed. Neither errors nor log lines quote the body.
    """
    # SNS delivers the test message of SES without an envelope if the subscription uses raw message delivery.
    if body.strip() == VALIDATED:
        return []
    value = values.decoded("the body", body)
    match value:
        case {"source": str(source)} if source in READERS:
            return [*(READERS[source](Received(value, region, words)) or ())]
    payload, published = _unwrapped(value, topics)
    return [] if payload is None else [*_published(Received(payload, region, words, published))]


def _published(received: Received) -> Sequence[FeedbackItem]:
    answers = (reader(received) for reader in TOPIC_READERS)
    events = next((events for events in answers if events is not None), None)
    if events is not None:
        return events
    if received.kind is None:
        raise Malformed("is not an event of a provider")
    logger.warning("an event of an unknown type", kind=values.word(received.kind))
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
