"""Events of Resend, as the function that takes them puts them into the feedback queue.

Types and fields: `WebhookEventPayload` of Resend's SDK for Node 6.38.0.
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


class Why(Struct, frozen=True, rename="camel"):
    """What an event says of its reason: `bounce`, `failed` and `suppressed` have some of these."""

    type: str = ""
    sub_type: str = ""
    message: str = ""
    reason: str = ""


class Data(Struct, frozen=True):
    """The mail that an event is about, without its addresses and its subject."""

    email_id: str = ""
    tags: dict[str, str] = {}
    bounce: Why = Why()
    failed: Why = Why()
    suppressed: Why = Why()


class ResendEvent(Struct, frozen=True):
    """The body of one of Resend's webhooks, as far as it goes on."""

    type: str
    created_at: str = ""
    data: Data = Data()


class Meaning(Struct, frozen=True):
    """What an event means for the mail's recipient."""

    status: Status | None
    facts: Facts = {}
    suppress: Literal["bounce", "complaint"] | None = None
    detail: str = ""


def read(value: Mapping[str, Any]) -> list[Event]:
    """The event in a message of the queue; [] where it is not about a mail of Mailroom's. Raises Malformed.

    A mail to several has events that do not say whom they are about: each proves that Resend has the mail,
    and no more.
    """
    event = values.convert("`event` of Resend", value.get("event"), ResendEvent)
    meant = READERS.get(event.type)
    if meant is None:
        logger.warning("an event of a type that is not known", kind=word(event.type))
        count("EventsUnknown")
        return []
    found = Reference.of_tags(event.data.tags)
    if found is None:
        logger.info("event of a mail that is not Mailroom's", kind=event.type)
        count("EventsUncorrelated")
        return []
    at, several = values.time("created_at", event.created_at), SEVERAL_TAG in event.data.tags
    meaning = Meaning("sent") if several else meant(event.data, at)
    return [
        Event(
            key=Key(found.id, "mail"),
            attempt=found.attempt,
            provider=SOURCE,
            provider_id=values.provider_id(event.data.email_id),
            kind=event.type,
            status=meaning.status,
            facts={name: fact for name, fact in meaning.facts.items() if fact != ""},
            recipients=(),
            several=several,
            suppress=meaning.suppress,
            at=at,
            detail=sentence(meaning.detail),
        )
    ]


def _bounced(data: Data, at: int) -> Meaning:
    """Permanent is a hard bounce; Transient may work later; Undetermined is a bounce, of an address that may
    be good."""
    why = data.bounce
    if not why.type:
        raise Malformed("an email.bounced of Resend without `bounce.type`")
    soft = why.type == "Transient"
    facts: Facts = {
        "undeliveredAt" if soft else "bouncedAt": at,
        "bounce_type": word(why.type),
        "bounce_subtype": word(why.sub_type),
        "diagnostic_code": sentence(why.message),
    }
    name = {"Permanent": "hard bounce", "Transient": "soft bounce"}.get(why.type, "bounce")
    return Meaning(
        "undelivered" if soft else "bounced",
        facts,
        "bounce" if why.type == "Permanent" else None,
        f"{name} ({word(why.sub_type) or 'no subtype'}): {why.message}",
    )


def _suppressed(data: Data, at: int) -> Meaning:
    """The address is on Resend's own list, and got nothing; SES calls the same a hard bounce."""
    kind = word(data.suppressed.type)
    facts: Facts = {"bouncedAt": at, "bounce_type": "Suppressed", "bounce_subtype": kind}
    return Meaning("bounced", facts, "bounce", f"on Resend's suppression list: {data.suppressed.message}")


def _failed(data: Data, at: int) -> Meaning:
    facts: Facts = {"undeliveredAt": at, "error_code": "failed"}
    return Meaning("undelivered", facts, detail=f"failed at Resend: {data.failed.reason}")


def _complained(_data: Data, at: int) -> Meaning:
    return Meaning("complained", {"complainedAt": at}, "complaint", "complaint")


def _always(status: Status | None, fact: str) -> Callable[[Data, int], Meaning]:
    """The same of every event of its type, whose time is `fact`."""
    return lambda _data, at: Meaning(status, {fact: at})


READERS: dict[str, Callable[[Data, int], Meaning]] = {
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
"""What each type of event means."""
