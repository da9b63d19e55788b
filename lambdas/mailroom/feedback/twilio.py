"""Status callbacks of Twilio, in the form in which the function `twilio_callbacks` queues them.

Source of the statuses: "Message status" in Twilio's page on the Message resource. Source of the error codes:
Twilio's error dictionary.
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
"""Value of `source` in a queue message that holds a status callback of Twilio."""

_SENT: tuple[Status, str | None] = ("sent", None)
_LOST: tuple[Status, str | None] = ("undelivered", "undeliveredAt")
_STATUSES: dict[str, tuple[Status, str | None]] = {
    **dict.fromkeys(("accepted", "scheduled", "queued", "sending", "partially_delivered"), _SENT),
    "sent": ("sent", "sentAt"),
    "delivered": ("delivered", "deliveredAt"),
    "read": ("delivered", "readAt"),
    **dict.fromkeys(("undelivered", "failed", "canceled"), _LOST),
}
"""Mailroom's status for each status of Twilio, and the ledger attribute for the time of the callback."""
_NO_HANDSET = "30006"
"""Error code for a landline or an unreachable carrier. 30005, an unknown handset, does not suppress the
number: the phone may only be switched off."""
_STOPPED = "21610"
"""Error code for a recipient who has sent STOP. A Messaging Service reports this after it has accepted the
message, because it chooses the sending number later."""


class TwilioCallback(Struct, frozen=True):
    """A status callback, as the feedback queue has it."""

    reference: str
    """`Reference.text` of the message."""
    received_at: int
    """Time of the event, in epoch milliseconds: when the callback arrived, because Twilio sends no time."""
    fields: dict[str, str]
    """Fields of the callback's form."""


def read(payload: Mapping[str, Any], region: str) -> list[Event]:
    """Read the event in a callback; the list is empty if the status is unknown. Raises Malformed.

    RawDlrDoneDate becomes `carrier_done_date` as text, and not `deliveredAt`: the time is by the carrier's
    clock, to the minute, and in a time zone that varies, according to Twilio.
    """
    callback = values.convert("a callback of Twilio", payload, TwilioCallback)
    reference = Reference.read(callback.reference)
    time_ms = values.milliseconds("received_at", callback.received_at)
    fields = callback.fields
    kind = fields.get("MessageStatus")
    if not kind:
        raise Malformed("a callback of Twilio without MessageStatus")
    if kind not in _STATUSES:
        logger.warning("a status of Twilio's that is not known", kind=values.word(kind))
        count("EventsUnknown")
        return []
    status, fact = _STATUSES[kind]
    code = values.word(fields.get("ErrorCode")) if status == "undelivered" else ""
    return [
        Event(
            key=Key(reference.id, "sms"),
            attempt=reference.attempt,
            provider="twilio",
            provider_id=values.provider_id(fields.get("MessageSid")),
            kind=kind,
            status=status,
            facts=_facts(fact, time_ms, code, fields),
            recipients=values.number(fields.get("To"), region),
            found_by_number=True,
            suppress=_suppress(code, fields.get("From", "")),
            at=time_ms,
            detail=_detail(kind, code) if status == "undelivered" else "",
        )
    ]


def _suppress(code: str, sender: str) -> Literal["bounce", "stop"] | None:
    """Return the reason to put the number on the suppression list, if any.

    `sender` is the callback's From, empty if Twilio left it out. A short code or an alphanumeric sender
    cannot reach every carrier, so error 30006 of such a sender does not suppress the number.
    """
    if code == _STOPPED:
        return "stop"
    return "bounce" if code == _NO_HANDSET and sender[:1] in {"+", ""} else None


def _facts(fact: str | None, time_ms: int, code: str, fields: Mapping[str, str]) -> Facts:
    facts: Facts = {} if fact is None else {fact: time_ms}
    if code:
        facts["error_code"] = code
    done_date = fields.get("RawDlrDoneDate", "")
    if len(done_date) == len("yymmddhhmm") and done_date.isascii() and done_date.isdigit():
        facts["carrier_done_date"] = done_date
    return facts


def _detail(kind: str, code: str) -> str:
    if code == _NO_HANDSET:
        return f"{kind}: error {code}, a landline or a carrier that cannot be reached"
    return f"{kind}: error {code}" if code else kind
