"""Reads status callbacks of Twilio that the function `twilio_callbacks` has put into the feedback queue.

Source of the statuses: "Message status" in Twilio's page on the Message resource.
"""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from mailroom.errors import Malformed
from mailroom.message.message import Key, Reference
from mailroom.message.outcome import Event, Facts, Row, Status
from mailroom.providers import values
from mailroom.providers.keywords import KeywordText, canonical
from mailroom.providers.received import Received
from mailroom.providers.twilio.refusals import TABLE
from mailroom.telemetry import count, logger

SOURCE = "twilio"
"""Value of `source` in a queue message that holds a status callback of Twilio."""
TEXT_SOURCE = "twilio-text"
"""Value of `source` in a queue message that holds a STOP or START received by Twilio."""

_SENT: tuple[Status, str | None] = ("sent", None)
_LOST: tuple[Status, str | None] = ("undelivered", "undeliveredAt")
_STATUSES: dict[str, tuple[Status, str | None]] = {
    **dict.fromkeys(("accepted", "scheduled", "queued", "sending", "partially_delivered"), _SENT),
    "sent": ("sent", "sentAt"),
    "delivered": ("delivered", "deliveredAt"),
    "read": ("delivered", "readAt"),
    **dict.fromkeys(("undelivered", "failed", "canceled"), _LOST),
}
"""Mailroom's status by Twilio's status, and the ledger attribute that stores the callback's time (or
None)."""
_NO_HANDSET = "30006"
"""Error code for a landline or an unreachable carrier, after which the number is suppressed. After 30005, an
unknown handset, the number is not suppressed, because the phone may only be switched off."""


class TwilioCallback(Struct, frozen=True):
    """A status callback of Twilio in a message of the feedback queue."""

    reference: str
    """Reference of the message that the callback is about, in the format of `Reference.text`."""
    received_at: int
    """Time at which the callback arrived, in epoch milliseconds. It is used as the event's time, because
    Twilio's callbacks do not contain a time."""
    fields: dict[str, str]
    """Form fields of the callback, by name."""


def read(received: Received) -> list[Event]:
    """Read the event in a status callback. Returns an empty list for an unknown status. Raises Malformed.

    The field RawDlrDoneDate is stored unchanged, as `carrier_done_date`, and not converted to `deliveredAt`:
    according to Twilio it is a time of the carrier's clock, to the minute, in a time zone that varies.
    """
    callback = values.convert("a callback of Twilio", received.payload, TwilioCallback)
    reference = Reference.read(callback.reference)
    time_ms = values.milliseconds("received_at", callback.received_at)
    fields = callback.fields
    kind = fields.get("MessageStatus")
    if not kind:
        raise Malformed("the callback of Twilio has no MessageStatus")
    if kind not in _STATUSES:
        logger.warning("an unknown status of Twilio", kind=values.word(kind))
        count("EventsUnknown")
        return []
    status, fact = _STATUSES[kind]
    code = values.word(fields.get("ErrorCode")) if status == "undelivered" else ""
    row = TABLE.get(code)
    return [
        Event(
            key=Key(reference.id, "sms"),
            attempt=reference.attempt,
            provider="twilio",
            provider_id=values.provider_id(fields.get("MessageSid")),
            kind=kind,
            status=status,
            facts=_facts(fact, time_ms, code, fields),
            recipients=values.number(fields.get("To"), received.region),
            found_by_number=True,
            suppress=_suppress(row, fields.get("From", "")),
            at=time_ms,
            detail=_detail(kind, code, row) if status == "undelivered" else "",
            misconfigured=row is not None and row.rings,
        )
    ]


def read_text(received: Received) -> list[KeywordText]:
    """Read a STOP or START from a queue message of the function `twilio_callbacks`. Raises Malformed."""
    return canonical(values.convert("a text by Twilio", received.payload, KeywordText), received.region)


def _suppress(row: Row | None, sender: str) -> Literal["bounce", "stop"] | None:
    """Return the reason to put the recipient's number on the suppression list, or None.

    A Messaging Service reports a recipient who has sent STOP in a callback and not in the response to the
    submit, because it chooses the sending number after it has accepted the message.

    `sender` is the callback's field From, or "" if the field is missing. If the sender is a short code or
    alphanumeric, error 30006 does not suppress the number, because such senders cannot reach every carrier.
    """
    if row is not None and row.effect == "opted_out":
        return "stop"
    landline = row is not None and row.code == _NO_HANDSET
    return "bounce" if landline and sender[:1] in {"+", ""} else None


def _facts(fact: str | None, time_ms: int, code: str, fields: Mapping[str, str]) -> Facts:
    facts: Facts = {} if fact is None else {fact: time_ms}
    if code:
        facts["error_code"] = code
    done_date = fields.get("RawDlrDoneDate", "")
    if len(done_date) == len("yymmddhhmm") and done_date.isascii() and done_date.isdigit():
        facts["carrier_done_date"] = done_date
    return facts


def _detail(kind: str, code: str, row: Row | None) -> str:
    words = f", {row.words}" if row else ""
    return f"{kind}: error {code}{words}" if code else kind
