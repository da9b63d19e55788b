"""Reads events of AWS End User Messaging for SMS, MMS and RCS. A pool with an RCS agent tries RCS first.

Sources: "Example event data" and "Event types for SMS, MMS, and voice" in the service's user guide; for RCS,
the event types RCS_… of the service's model (botocore 1.44.5).
"""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from mailroom.message.message import Key, Reference
from mailroom.message.outcome import Event, Facts, Row, Status
from mailroom.providers import values
from mailroom.providers.aws_sms.refusals import EVENTS
from mailroom.providers.keywords import KeywordText, canonical
from mailroom.providers.received import FeedbackItem, Received
from mailroom.telemetry import count, logger

PREFIXES = ("TEXT_", "MEDIA_", "RCS_")
CONTEXT = "reference"
"""Key of Mailroom's reference in the `Context` of the request that submitted the SMS."""

_ON_ITS_WAY = {"QUEUED", "PENDING", "SENT", "FALLEN_BACK_TO_SMS"}
_ARRIVED = {"DELIVERED", "READ"}


class SmsEvent(Struct, frozen=True, rename="camel"):
    """The fields of an event that Mailroom reads; times are epoch milliseconds."""

    event_type: str
    event_timestamp: int = -1
    """Time of the event. The default, -1, makes an event without a time malformed."""
    is_final: bool = False
    message_id: str | None = None
    destination_phone_number: str | None = None
    message_request_timestamp: int | None = None
    message_status_description: str | None = None
    context: dict[str, Any] | None = None


class Inbound(Struct, frozen=True, rename="camel"):
    """The fields of a two-way SMS of AWS End User Messaging that Mailroom reads. Source: "Example of a
    two-way SMS message payload for Amazon SNS topics" in the service's user guide."""

    origination_number: str
    destination_number: str
    message_body: str


def read(received: Received) -> Sequence[FeedbackItem] | None:
    """Read an event of an SMS, or a text that a person sent. Return None for the payload of another service.
    Raises Malformed."""
    if "inboundMessageId" in received.payload:
        return _text(received)
    return _event(received) if (received.kind or "").startswith(PREFIXES) else None


def _text(received: Received) -> list[KeywordText]:
    """Read a text that AWS received. Return an empty list if the text is not a keyword. Raises Malformed.

    The text's time is the time at which SNS published it, because AWS does not report the time at which the
    person sent it.
    """
    text = values.convert("a text by AWS", received.payload, Inbound)
    wish = received.words.wish(text.message_body)
    if wish is None:
        return []
    time_ms = values.time("Timestamp", received.published)
    keyword = KeywordText(text.origination_number, text.destination_number, wish, time_ms)
    return canonical(keyword, received.region)


def _event(received: Received) -> list[Event]:
    """Read an event whose type begins with one of PREFIXES. Return an empty list for an event about an SMS of
    another program.

    Raises Malformed if a field has an invalid type, or if the time of an event about an SMS of Mailroom is
    invalid.
    """
    event = values.convert("an event of an SMS", received.payload, SmsEvent)
    reference = _reference(event)
    if reference is None:
        logger.info("event of an SMS that is not Mailroom's", kind=values.word(event.event_type))
        count("EventsUncorrelated")
        return []
    time_ms = values.milliseconds("eventTimestamp", event.event_timestamp)
    status = _status(event)
    row = EVENTS.get(event.event_type.partition("_")[2]) if status == "undelivered" else None
    return [
        Event(
            key=Key(reference.id, "sms"),
            attempt=reference.attempt,
            provider="aws",
            provider_id=values.provider_id(event.message_id),
            kind=values.word(event.event_type),
            status=status,
            facts=_facts(event, status, time_ms),
            recipients=values.number(event.destination_phone_number, received.region),
            found_by_number=True,
            at=time_ms,
            detail=_detail(event, row) if status == "undelivered" else "",
            misconfigured=row is not None and row.rings,
        )
    ]


def _reference(event: SmsEvent) -> Reference | None:
    """Return the reference in the context of the SMS, or None if another program sent the SMS. Another
    program may use the key CONTEXT for values that are not references."""
    text = (event.context or {}).get(CONTEXT)
    return Reference.found_in(text) if isinstance(text, str) else None


def _status(event: SmsEvent) -> Status:
    """Return the status that an event of this type proves.

    SUCCESSFUL means that the carrier accepted the SMS. In countries without delivery reports this event is
    the final one, and is treated as DELIVERED. After a failed RCS message the status is undelivered. AWS may
    then send the message as an SMS, and the later events of the SMS replace this status.
    """
    result = event.event_type.partition("_")[2]
    if result in _ON_ITS_WAY:
        return "sent"
    if result == "SUCCESSFUL":
        return "delivered" if event.is_final else "sent"
    return "delivered" if result in _ARRIVED else "undelivered"


def _facts(event: SmsEvent, status: Status, time_ms: int) -> Facts:
    facts: Facts = {}
    if event.message_request_timestamp is not None:
        facts["sentAt"] = values.milliseconds("messageRequestTimestamp", event.message_request_timestamp)
    if status == "delivered":
        facts["readAt" if event.event_type == "RCS_READ" else "deliveredAt"] = time_ms
    if status == "undelivered":
        facts |= {"undeliveredAt": time_ms, "error_code": values.word(event.event_type)}
    return facts


def _detail(event: SmsEvent, row: Row | None) -> str:
    kind, description = values.word(event.event_type), event.message_status_description
    description = description or (row.words if row else "")
    return values.without_numbers(f"{kind}: {description}") if description else kind
