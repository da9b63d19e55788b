"""Status callbacks of Twilio, as the function that takes them puts them into the feedback queue.

Statuses: "Message status" of Twilio's Message resource; codes: Twilio's error dictionary.
"""

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from mailroom.errors import Malformed
from mailroom.feedback import values
from mailroom.message.message import Key, Reference
from mailroom.message.outcome import Event, Facts, Status
from mailroom.telemetry import count, logger

SOURCE = "twilio"

_SENT: tuple[Status, str | None] = ("sent", None)
_LOST: tuple[Status, str | None] = ("undelivered", "undeliveredAt")
_STATUSES: dict[str, tuple[Status, str | None]] = {
    **dict.fromkeys(("accepted", "scheduled", "queued", "sending", "partially_delivered"), _SENT),
    "sent": ("sent", "sentAt"),
    "delivered": ("delivered", "deliveredAt"),
    "read": ("delivered", "readAt"),
    **dict.fromkeys(("undelivered", "failed", "canceled"), _LOST),
}
"""What each status means here, and the fact that its time is."""
_NO_HANDSET = "30006"
"""A landline, or a carrier that cannot be reached. 30005, an unknown handset, may only be switched off."""
_STOPPED = "21610"
"""A Messaging Service accepts the message before it chooses a number and finds the STOP."""


class TwilioCallback(Struct, frozen=True):
    """What the queue holds. `received_at`, epoch milliseconds, is the event's time: Twilio sends no time."""

    reference: str
    received_at: int
    fields: dict[str, str]


def read(words: Mapping[str, Any], region: str) -> list[Event]:
    """The event in a callback; [] where its status is not known. Raises Malformed.

    RawDlrDoneDate is kept as it is and is no `deliveredAt`: it is a carrier's own clock, to the minute, and
    Twilio says that its time zone varies.
    """
    callback = values.convert("a callback of Twilio", words, TwilioCallback)
    found = Reference.read(callback.reference)
    at = values.milliseconds("received_at", callback.received_at)
    fields = callback.fields
    said = fields.get("MessageStatus")
    if not said:
        raise Malformed("a callback of Twilio without MessageStatus")
    if said not in _STATUSES:
        logger.warning("a status of Twilio's that is not known", kind=values.word(said))
        count("EventsUnknown")
        return []
    status, fact = _STATUSES[said]
    code = values.word(fields.get("ErrorCode")) if status == "undelivered" else ""
    return [
        Event(
            key=Key(found.id, "sms"),
            attempt=found.attempt,
            provider="twilio",
            provider_id=values.provider_id(fields.get("MessageSid")),
            kind=said,
            status=status,
            facts=_facts(fact, at, code, fields),
            recipients=values.number(fields.get("To"), region),
            found_by_number=True,
            suppress=_suppress(code, fields.get("From", "")),
            at=at,
            detail=_detail(said, code) if status == "undelivered" else "",
        )
    ]


def _suppress(code: str, sender: str) -> Literal["bounce", "stop"] | None:
    """Why the number gets nothing more. A short code or a name does not reach every carrier, so its 30006
    tells nothing of the number. "": the callback does not say who sent it."""
    if code == _STOPPED:
        return "stop"
    return "bounce" if code == _NO_HANDSET and sender[:1] in {"+", ""} else None


def _facts(fact: str | None, at: int, code: str, fields: Mapping[str, str]) -> Facts:
    facts: Facts = {} if fact is None else {fact: at}
    if code:
        facts["error_code"] = code
    carrier = fields.get("RawDlrDoneDate", "")
    if len(carrier) == len("yymmddhhmm") and carrier.isascii() and carrier.isdigit():
        facts["carrier_done_date"] = carrier
    return facts


def _detail(said: str, code: str) -> str:
    if code == _NO_HANDSET:
        return f"{said}: error {code}, a landline or a carrier that cannot be reached"
    return f"{said}: error {code}" if code else said
