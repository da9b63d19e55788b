"""Events of AWS End User Messaging for SMS, MMS, and the RCS that a pool with an RCS agent tries first.

Their contents and types stand in its user guide: "Example event data" and "Event types for SMS, MMS, and
voice"; those of RCS are the types RCS_… of the service's model (botocore 1.44.5).
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from mailroom.errors import Malformed
from mailroom.feedback import values
from mailroom.message.message import Key, Reference
from mailroom.message.outcome import Event, Facts, Status
from mailroom.telemetry import count, logger

PREFIXES = ("TEXT_", "MEDIA_", "RCS_")
CONTEXT = "reference"
"""The key of our reference in the context that a message is submitted with."""

_ON_ITS_WAY = {"QUEUED", "PENDING", "SENT", "FALLEN_BACK_TO_SMS"}
_ARRIVED = {"DELIVERED", "READ"}


class SmsEvent(Struct, frozen=True, rename="camel"):
    """An event, as far as it is used; times are epoch milliseconds."""

    event_type: str
    event_timestamp: int = -1  # no time: what names a message and has none is malformed
    is_final: bool = False
    message_id: str | None = None
    destination_phone_number: str | None = None
    message_request_timestamp: int | None = None
    message_status_description: str | None = None
    context: dict[str, Any] | None = None


def read(words: Mapping[str, Any], region: str) -> list[Event]:
    """The event of a type that begins with one of PREFIXES; [] where it carries no reference of Mailroom's.
    Raises Malformed for an event of such an SMS that cannot be understood, and for values that no event of
    an SMS has."""
    event = values.convert("an event of an SMS", words, SmsEvent)
    found = _reference(event)
    if found is None:
        logger.info("event of an SMS that is not Mailroom's", kind=values.word(event.event_type))
        count("EventsUncorrelated")
        return []
    at = values.milliseconds("eventTimestamp", event.event_timestamp)
    status = _status(event)
    return [
        Event(
            key=Key(found.id, "sms"),
            attempt=found.attempt,
            provider="aws",
            provider_id=values.provider_id(event.message_id),
            kind=values.word(event.event_type),
            status=status,
            facts=_facts(event, status, at),
            recipients=values.number(event.destination_phone_number, region),
            found_by_number=True,
            at=at,
            detail=_detail(event) if status == "undelivered" else "",
        )
    ]


def _reference(event: SmsEvent) -> Reference | None:
    """None: the SMS is another program's, whose context may have the same key."""
    text = (event.context or {}).get(CONTEXT)
    try:
        return Reference.read(text if isinstance(text, str) else "")
    except Malformed:
        return None


def _status(event: SmsEvent) -> Status:
    """SUCCESSFUL is the carrier's acceptance. In countries where nothing follows it, it is final and stands
    for DELIVERED. An RCS that failed may go on as an SMS, whose delivery then counts."""
    ending = event.event_type.partition("_")[2]
    if ending in _ON_ITS_WAY:
        return "sent"
    if ending == "SUCCESSFUL":
        return "delivered" if event.is_final else "sent"
    return "delivered" if ending in _ARRIVED else "undelivered"


def _facts(event: SmsEvent, status: Status, at: int) -> Facts:
    facts: Facts = {}
    if event.message_request_timestamp is not None:
        facts["sentAt"] = values.milliseconds("messageRequestTimestamp", event.message_request_timestamp)
    if status == "delivered":
        facts["readAt" if event.event_type == "RCS_READ" else "deliveredAt"] = at
    if status == "undelivered":
        facts |= {"undeliveredAt": at, "error_code": values.word(event.event_type)}
    return facts


def _detail(event: SmsEvent) -> str:
    kind, description = values.word(event.event_type), event.message_status_description
    return values.without_numbers(f"{kind}: {description}") if description else kind
