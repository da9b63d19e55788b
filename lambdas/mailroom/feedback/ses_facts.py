"""What each type of SES event tells, whatever mail it is about.

Their contents stand in SES's developer guide: "Contents of event data that Amazon SES publishes to Amazon
SNS" and "Amazon SNS notification contents for Amazon SES".
"""

from collections.abc import Callable, Iterator
from typing import Literal

from msgspec import Struct

from mailroom.feedback.bounded import sentence, word
from mailroom.message.outcome import Facts, Status


class Recipient(Struct, frozen=True, rename="camel"):
    """One that bounced, complained or waits; the code is there where a delivery status notification was."""

    email_address: str = ""
    diagnostic_code: str | None = None


class Section(Struct, frozen=True, rename="camel"):
    """The object that tells of the event: what any of the types may hold, as far as it is used."""

    timestamp: str | None = None
    recipients: list[str] | None = None
    bounce_type: str | None = None
    bounce_sub_type: str | None = None
    bounced_recipients: list[Recipient] | None = None
    complaint_feedback_type: str | None = None
    complaint_sub_type: str | None = None
    complained_recipients: list[Recipient] | None = None
    delay_type: str | None = None
    delayed_recipients: list[Recipient] | None = None
    reason: str | None = None
    error_message: str | None = None


class Told(Struct, frozen=True):
    """What an event means for those that it names; None: it names nobody and is about the whole mail."""

    status: Status | None
    facts: Facts
    named: list[str] | None = None
    suppress: Literal["bounce", "complaint"] | None = None
    detail: str = ""


Reader = Callable[[Section, int], Iterator[Told]]
"""From the object and the event's time in epoch milliseconds."""


def _sent(_section: Section, _at: int) -> Iterator[Told]:
    yield Told("sent", {})


def _delivery(section: Section, at: int) -> Iterator[Told]:
    yield Told("delivered", {"deliveredAt": at}, section.recipients or [])


def _bounce(section: Section, at: int) -> Iterator[Told]:
    """One for each diagnostic code: a mail's recipients may bounce for different reasons.

    Permanent is a hard bounce. Transient is SES having given up for now, or an out-of-office reply.
    Undetermined is a bounce, of an address that may be good.
    """
    kind, subtype = word(section.bounce_type), word(section.bounce_sub_type)
    soft = kind == "Transient"
    types: Facts = {"bounce_type": kind, "bounce_subtype": subtype}
    name = {"Permanent": "hard bounce", "Transient": "soft bounce"}.get(kind, "bounce")
    for code, named in _by_code(section.bounced_recipients or []).items():
        yield Told(
            "undelivered" if soft else "bounced",
            _filled({"undeliveredAt" if soft else "bouncedAt": at, **types, "diagnostic_code": code}),
            named,
            "bounce" if kind == "Permanent" else None,
            f"{name} ({subtype or 'no subtype'})" + (f": {code}" if code else ""),
        )


def _by_code(recipients: list[Recipient]) -> dict[str, list[str]]:
    codes: dict[str, list[str]] = {}
    for each in recipients:
        codes.setdefault(sentence(each.diagnostic_code or ""), []).append(each.email_address)
    return codes or {"": []}


def _complaint(section: Section, at: int) -> Iterator[Told]:
    """`not-spam` is the opposite of a complaint: somebody took the mail out of the spam folder (RFC 6430).

    The time is the report's own, `timestamp`; `arrivalDate` is when the mail had arrived (RFC 5965).
    """
    kind = word(section.complaint_feedback_type)
    types: Facts = {"complaint_type": kind, "complaint_subtype": word(section.complaint_sub_type)}
    named = [each.email_address for each in section.complained_recipients or []]
    if kind == "not-spam":
        yield Told(None, _filled(types), named, detail="reported as not spam")
        return
    facts = _filled({"complainedAt": at, **types})
    # Of several it is only known that one of them complained: nobody is shut out for another.
    suppress: Literal["complaint"] | None = "complaint" if len(set(named)) == 1 else None
    yield Told("complained", facts, named, suppress, f"complaint ({kind or 'no type'})")


def _delay(section: Section, at: int) -> Iterator[Told]:
    kind = word(section.delay_type)
    named = [each.email_address for each in section.delayed_recipients or []]
    yield Told(None, _filled({"delayedAt": at, "delay_type": kind}), named, detail=f"delayed ({kind})")


def _refused(code: str, what: str) -> Reader:
    def read(section: Section, at: int) -> Iterator[Told]:
        reason = section.reason or section.error_message
        facts: Facts = {"undeliveredAt": at, "error_code": code}
        yield Told("undelivered", facts, detail=f"{what}: {reason}" if reason else what)

    return read


def _fact(name: str) -> Reader:
    def read(_section: Section, at: int) -> Iterator[Told]:
        yield Told(None, {name: at})

    return read


def _nothing(_section: Section, _at: int) -> Iterator[Told]:
    """A change of a contact's subscriptions: of the mail it says only that it was sent."""
    yield Told(None, {})


def _filled(facts: Facts) -> Facts:
    return {name: value for name, value in facts.items() if value != ""}


READERS: dict[str, tuple[str, Reader]] = {
    "Send": ("send", _sent),
    "Delivery": ("delivery", _delivery),
    "Bounce": ("bounce", _bounce),
    "Complaint": ("complaint", _complaint),
    "Reject": ("reject", _refused("Reject", "rejected by SES")),
    "Rendering Failure": ("failure", _refused("Rendering Failure", "template not rendered by SES")),
    "DeliveryDelay": ("deliveryDelay", _delay),
    "Open": ("open", _fact("openedAt")),
    "Click": ("click", _fact("clickedAt")),
    "Subscription": ("subscription", _nothing),
}
"""Each type of event, the object that tells of it, and what that means."""
TELLING = {"Delivery", "Bounce", "Complaint"}
"""Types that say nothing without their object."""
