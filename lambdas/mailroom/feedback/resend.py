"""Events of Resend, in the form in which the function `resend_events` queues them.

Source of types and fields: `WebhookEventPayload` in Resend's SDK for Node 6.38.0.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal

from msgspec import Struct

from mailroom.errors import Malformed
from mailroom.feedback import values
from mailroom.feedback.values import sentence, word
from mailroom.message.message import SEVERAL_TAG, Key, Reference
from mailroom.message.outcome import Event, Facts, Status
from mailroom.telemetry import count, logger

SOURCE = "resend"
"""Value of `source` in a queue message that holds an event of Resend."""


class Cause(Struct, frozen=True, rename="camel"):
    """The cause of an event; `bounce`, `failed` and `suppressed` each use some of the fields."""

    type: str = ""
    sub_type: str = ""
    message: str = ""
    reason: str = ""


class Data(Struct, frozen=True):
    """The mail that an event is about, without its addresses and its subject."""

    email_id: str = ""
    tags: dict[str, str] = {}
    bounce: Cause = Cause()
    failed: Cause = Cause()
    suppressed: Cause = Cause()


class ResendEvent(Struct, frozen=True):
    """The fields of a webhook's body that go into the feedback queue."""

    type: str
    created_at: str = ""
    data: Data = Data()


class Meaning(Struct, frozen=True):
    """The effect of an event on the mail's recipient."""

    status: Status | None
    """Status that the event proves; None for an event that only adds facts."""
    facts: Facts = {}
    suppress: Literal["bounce", "complaint"] | None = None
    """Reason to put the recipient on the suppression list."""
    detail: str = ""


def read(message: Mapping[str, Any]) -> list[Event]:
    """Read the event in a queue message; the list is empty if the event is about another program's mail, or
    of an unknown type. Raises Malformed.

    Events of a mail to several recipients do not name the recipient. Such an event only proves that Resend
    has accepted the mail.
    """
    event = values.convert("`event` of Resend", message.get("event"), ResendEvent)
    reader = READERS.get(event.type)
    if reader is None:
        logger.warning("an event of a type that is not known", kind=word(event.type))
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
            facts={name: fact for name, fact in meaning.facts.items() if fact != ""},
            recipients=(),
            several=several,
            suppress=meaning.suppress,
            at=time_ms,
            detail=sentence(meaning.detail),
        )
    ]


def _bounced(data: Data, time_ms: int) -> Meaning:
    """Read a bounce: Permanent is a hard bounce; after Transient a later mail may arrive; after Undetermined
    the address may be valid."""
    cause = data.bounce
    if not cause.type:
        raise Malformed("an email.bounced of Resend without `bounce.type`")
    soft = cause.type == "Transient"
    facts: Facts = {
        "undeliveredAt" if soft else "bouncedAt": time_ms,
        "bounce_type": word(cause.type),
        "bounce_subtype": word(cause.sub_type),
        "diagnostic_code": sentence(cause.message),
    }
    name = {"Permanent": "hard bounce", "Transient": "soft bounce"}.get(cause.type, "bounce")
    return Meaning(
        "undelivered" if soft else "bounced",
        facts,
        "bounce" if cause.type == "Permanent" else None,
        f"{name} ({word(cause.sub_type) or 'no subtype'}): {cause.message}",
    )


def _suppressed(data: Data, time_ms: int) -> Meaning:
    """Read a suppression: Resend did not send the mail because the address is on Resend's suppression list.
    SES reports this as a hard bounce."""
    kind = word(data.suppressed.type)
    facts: Facts = {"bouncedAt": time_ms, "bounce_type": "Suppressed", "bounce_subtype": kind}
    return Meaning("bounced", facts, "bounce", f"on Resend's suppression list: {data.suppressed.message}")


def _failed(data: Data, time_ms: int) -> Meaning:
    facts: Facts = {"undeliveredAt": time_ms, "error_code": "failed"}
    return Meaning("undelivered", facts, detail=f"failed at Resend: {data.failed.reason}")


def _complained(_data: Data, time_ms: int) -> Meaning:
    return Meaning("complained", {"complainedAt": time_ms}, "complaint", "complaint")


Reader = Callable[[Data, int], Meaning]
"""Reads an event's data; the number is the event's time in epoch milliseconds."""


def _always(status: Status | None, fact: str) -> Reader:
    """Create a reader that returns `status`, and writes the event's time into the attribute `fact`."""
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
