"""Reads events of Resend that the function `resend_mail_events` has put into the feedback queue.

Source of the event types and fields: `WebhookEventPayload` in Resend's SDK for Node 6.38.0.
"""

from collections.abc import Callable

from msgspec import Struct

from mailroom.errors import Malformed
from mailroom.message.message import SEVERAL_TAG, Key, Reference
from mailroom.message.outcome import Event, Facts, Status, table
from mailroom.providers import values
from mailroom.providers.meaning import Meaning, bounced, filled
from mailroom.providers.received import Received
from mailroom.providers.values import sentence, word
from mailroom.telemetry import count, logger

SOURCE = "resend"
"""Value of `source` in a queue message that holds an event of Resend."""


class Cause(Struct, frozen=True, rename="camel"):
    """Cause of an event: the object in the event's field `bounce`, `failed` or `suppressed`. Each of these
    objects has some of the fields of this class."""

    type: str = ""
    sub_type: str = ""
    message: str = ""
    reason: str = ""


class Data(Struct, frozen=True):
    """Data of an event about the mail. Addresses and subject are not read."""

    email_id: str = ""
    tags: dict[str, str] = {}
    bounce: Cause = Cause()
    failed: Cause = Cause()
    suppressed: Cause = Cause()


class ResendEvent(Struct, frozen=True):
    """Fields of a webhook's body that are put into the feedback queue."""

    type: str
    created_at: str = ""
    data: Data = Data()


def read(received: Received) -> list[Event]:
    """Read the event in a queue message. Returns an empty list if the event is about a mail of another
    program, or has an unknown type. Raises Malformed.

    If a mail has several recipients, its events do not name the recipient they are about. Such an event only
    proves that Resend has accepted the mail.
    """
    event = values.convert("`event` of Resend", received.payload.get("event"), ResendEvent)
    reader = READERS.get(event.type)
    if reader is None:
        logger.warning("an event of an unknown type", kind=word(event.type))
        count("EventsUnknown")
        return []
    reference = Reference.of_tags(event.data.tags)
    if reference is None:
        logger.info("event of a mail that is not Mailroom's", kind=event.type)
        count("EventsUncorrelated")
        return []
    time_ms, several = values.time("created_at", event.created_at), SEVERAL_TAG in event.data.tags
    meaning = Meaning("sent") if several else reader(event.data, time_ms)
    return [
        Event(
            key=Key(reference.id, "mail"),
            attempt=reference.attempt,
            provider=SOURCE,
            provider_id=values.provider_id(event.data.email_id),
            kind=event.type,
            status=meaning.status,
            facts=filled(meaning.facts),
            recipients=(),
            several=several,
            suppress=meaning.suppress,
            at=time_ms,
            detail=sentence(meaning.detail),
            misconfigured=event.type == "email.failed" and _rings(event.data.failed.reason),
        )
    ]


EVENTS = table(
    "https://resend.com/docs/webhooks/emails/failed",
    "2026-11-29",
    ("reached_daily_quota", "day", "Triggered when there are issues such as email quota limits."),
)
"""Reasons of the event email.failed. The page shows only this one."""


def _rings(reason: str) -> bool:
    return (row := EVENTS.get(reason)) is not None and row.rings


def _bounced(data: Data, time_ms: int) -> Meaning:
    cause = data.bounce
    if not cause.type:
        raise Malformed("the event email.bounced of Resend has no `bounce.type`")
    return bounced(word(cause.type), word(cause.sub_type), sentence(cause.message), time_ms)


def _suppressed(data: Data, time_ms: int) -> Meaning:
    """Read a suppression: Resend did not send the mail, because the address is on Resend's suppression list.
    The result is the same as for a hard bounce, which SES reports in this case."""
    kind = word(data.suppressed.type)
    facts: Facts = {"bouncedAt": time_ms, "bounce_type": "Suppressed", "bounce_subtype": kind}
    return Meaning(
        "bounced", facts, None, "bounce", f"on Resend's suppression list: {data.suppressed.message}"
    )


def _failed(data: Data, time_ms: int) -> Meaning:
    facts: Facts = {"undeliveredAt": time_ms, "error_code": "failed"}
    return Meaning("undelivered", facts, detail=f"failed at Resend: {data.failed.reason}")


def _complained(_data: Data, time_ms: int) -> Meaning:
    return Meaning("complained", {"complainedAt": time_ms}, suppress="complaint", detail="complaint")


Reader = Callable[[Data, int], Meaning]
"""Function that returns the meaning of an event's data; the number is the event's time in epoch
milliseconds."""


def _always(status: Status | None, fact: str) -> Reader:
    """Create a reader that returns `status` for every event, with the event's time as the ledger attribute
    `fact`."""
    return lambda _data, time_ms: Meaning(status, {fact: time_ms})


READERS: dict[str, Reader] = {
    "email.sent": _always("sent", "sentAt"),
    "email.delivered": _always("delivered", "deliveredAt"),
    "email.delivery_delayed": _always(None, "delayedAt"),
    "email.bounced": _bounced,
    "email.complained": _complained,
    "email.failed": _failed,
    "email.suppressed": _suppressed,
    "email.opened": _always(None, "openedAt"),
    "email.clicked": _always(None, "clickedAt"),
}
"""Readers of the events' data, by the events' types."""
