"""Events of Amazon SES: of a configuration set (`eventType`) and of an identity (`notificationType`)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from mailroom.errors import Malformed
from mailroom.feedback import values
from mailroom.feedback.values import sentence, word
from mailroom.message import address
from mailroom.message.message import Key, Reference
from mailroom.message.outcome import Event, Facts, Status
from mailroom.telemetry import count, logger

HEADER = "x-correlation-id"


class Header(Struct, frozen=True):
    """A header of the mail as it was handed to SES."""

    name: str = ""
    value: str | None = None


class MailObject(Struct, frozen=True, rename="camel"):
    """The mail that an event is about. An identity's notices have no tags, and headers where asked for."""

    timestamp: str = ""
    message_id: str | None = None
    destination: list[str] | None = None
    headers: list[Header] | None = None
    headers_truncated: bool | str | None = None  # the guide says a string, its examples have a boolean
    tags: dict[str, list[str]] | None = None


class EventRecipient(Struct, frozen=True, rename="camel"):
    """One that bounced, complained or waits; the code is there where a delivery status notification was."""

    email_address: str = ""
    diagnostic_code: str | None = None


class EventObject(Struct, frozen=True, rename="camel"):
    """The object that describes the event: what any of the types may hold, as far as it is used."""

    timestamp: str | None = None
    recipients: list[str] | None = None
    bounce_type: str | None = None
    bounce_sub_type: str | None = None
    bounced_recipients: list[EventRecipient] | None = None
    complaint_feedback_type: str | None = None
    complaint_sub_type: str | None = None
    complained_recipients: list[EventRecipient] | None = None
    delay_type: str | None = None
    delayed_recipients: list[EventRecipient] | None = None
    reason: str | None = None
    error_message: str | None = None


class Meaning(Struct, frozen=True):
    """What an event means for those that it names; None: it names nobody and is about the whole mail."""

    status: Status | None
    facts: Facts
    named: list[str] | None = None
    suppress: Literal["bounce", "complaint"] | None = None
    detail: str = ""


Reader = Callable[[EventObject, int], Iterator[Meaning]]
"""Reads an event's object, at the event's time in epoch milliseconds."""


class Destination:
    """Whom a mail went to; `several`: to more than one mailbox.

    A bounce names the address that the last server on the way tried, the Final-Recipient of RFC 3464. After a
    forwarding that is somebody to whom the mail was never sent, so an event counts only for the mail's own
    recipients. Of a mail to one mailbox every event is about that one. Where SES does not say who the
    recipients are, the event is taken at its word.
    """

    def __init__(self, destination: Iterable[str]) -> None:
        read = {each: _mailbox(each) for each in destination}
        self.known = tuple(dict.fromkeys(each for each in read.values() if each is not None))
        self.several = len({form or text for text, form in read.items()}) > 1
        self._known = frozenset(self.known)
        self._named = bool(read)

    def among(self, named: Iterable[str]) -> tuple[str, ...]:
        """The mail's recipients among `named`, each once."""
        if self._named and not self.several:
            return self.known
        read = {each: _mailbox(each) for each in named}
        meant = {
            each: form for each, form in read.items() if form and (form in self._known or not self._named)
        }
        if len(meant) < len(read):
            logger.warning("recipients of an event left out", recipients=len(read) - len(meant))
        return tuple(dict.fromkeys(meant.values()))


def _mailbox(text: str) -> str | None:
    """A mail address bare and in lower case, its domain in ASCII; None: it cannot be read."""
    try:
        return address.bare(text)
    except ValueError:
        return None


def read(kind: str, words: Mapping[str, Any]) -> list[Event]:
    """What an event of a type in READERS says: one Event, or for a bounce of several recipients one for each
    reason; [] where nothing names a mail of Mailroom's. Raises Malformed for an event of such a mail that
    cannot be understood, and for values that no event of SES has.

    Whatever its tags say, it is a mail's: no event of SES reaches another channel's item.
    """
    raw = words.get("mail")
    mail = MailObject() if raw is None else values.convert("`mail` of an SES event", raw, MailObject)
    truncated = mail.headers_truncated in {True, "true"}
    found = find(mail.headers or (), mail.tags or {}, truncated=truncated)
    if found is None:
        logger.info("event of a mail that is not Mailroom's", kind=kind)
        count("EventsUncorrelated")
        return []
    section, telling = _section(kind, words)
    sent_at = values.time("mail.timestamp", mail.timestamp)
    at = values.time("timestamp", section.timestamp) if section.timestamp else sent_at
    destination = Destination(mail.destination or ())
    events = []
    for each in telling(section, at):
        meaning, recipients = _concerned(each, destination)
        events.append(
            Event(
                key=Key(found.id, "mail"),
                attempt=found.attempt,
                provider="ses",
                provider_id=values.provider_id(mail.message_id),
                kind=kind,
                status=meaning.status,
                facts={"sentAt": sent_at, **meaning.facts},
                recipients=recipients,
                several=destination.several or len(recipients) > 1,
                suppress=meaning.suppress,
                at=at,
                detail=values.sentence(meaning.detail),
            )
        )
    return events


def _section(kind: str, words: Mapping[str, Any]) -> tuple[EventObject, Reader]:
    name, telling = READERS[kind]
    found = words.get(name)
    if found is None and kind not in TELLING:
        return EventObject(), telling
    return values.convert(f"`{name}` of an SES event", found, EventObject), telling


def _concerned(meaning: Meaning, destination: Destination) -> tuple[Meaning, tuple[str, ...]]:
    """Whom it is about; () is all of the mail's recipients. So an event that is about some of several, and
    does not say whom, is taken for what it still proves: that SES has the mail."""
    if meaning.named is None:
        return meaning, () if destination.several else destination.known
    recipients = destination.among(meaning.named)
    if recipients or not destination.several:
        return meaning, recipients
    return Meaning("sent", {}), ()


def find(
    headers: Sequence[Header], tags: Mapping[str, Sequence[str]], *, truncated: bool
) -> Reference | None:
    """The reference in a mail's header, else in its tags; None: the mail is not Mailroom's.

    The header wins where the two disagree: it is in the mail itself and no contract lets a producer write it,
    while a tag may come from elsewhere, such as a default of the configuration set. Several headers that
    differ count as none. The last of a `truncated` list is not read: it may be cut, and half a reference is
    another's.

    What cannot be read is another program's: many write an X-Correlation-ID of their own, and their mails go
    through the stage's configuration set where it is their identity's default. Every mail of Mailroom's has a
    reference in both.
    """
    whole = headers[:-1] if truncated else headers
    written = [each.value.strip() for each in whole if each.name.lower() == HEADER and each.value]
    by_header = _only(_readable(written))
    by_tags = Reference.of_tags({name: values[0] for name, values in tags.items() if values})
    if by_header is not None and by_tags is not None and by_header.id == by_tags.id:
        return max(by_header, by_tags, key=lambda each: each.attempt)
    return by_header or by_tags


def _readable(texts: Iterable[str]) -> set[Reference]:
    found = set()
    for each in texts:
        try:
            found.add(Reference.read(each))
        except Malformed:
            continue
    return found


def _only(references: set[Reference]) -> Reference | None:
    return references.pop() if len(references) == 1 else None


def _delivery(section: EventObject, at: int) -> Iterator[Meaning]:
    yield Meaning("delivered", {"deliveredAt": at}, section.recipients or [])


def _bounce(section: EventObject, at: int) -> Iterator[Meaning]:
    """One for each diagnostic code: a mail's recipients may bounce for different reasons.

    Permanent is a hard bounce. Transient is SES having given up for now, or an out-of-office reply.
    Undetermined is a bounce, of an address that may be good.
    """
    kind, subtype = word(section.bounce_type), word(section.bounce_sub_type)
    soft = kind == "Transient"
    types: Facts = {"bounce_type": kind, "bounce_subtype": subtype}
    name = {"Permanent": "hard bounce", "Transient": "soft bounce"}.get(kind, "bounce")
    for code, named in _by_code(section.bounced_recipients or []).items():
        yield Meaning(
            "undelivered" if soft else "bounced",
            _filled({"undeliveredAt" if soft else "bouncedAt": at, **types, "diagnostic_code": code}),
            named,
            "bounce" if kind == "Permanent" else None,
            f"{name} ({subtype or 'no subtype'})" + (f": {code}" if code else ""),
        )


def _by_code(recipients: list[EventRecipient]) -> dict[str, list[str]]:
    codes: dict[str, list[str]] = {}
    for each in recipients:
        codes.setdefault(sentence(each.diagnostic_code or ""), []).append(each.email_address)
    return codes or {"": []}


def _complaint(section: EventObject, at: int) -> Iterator[Meaning]:
    """`not-spam` is the opposite of a complaint: somebody took the mail out of the spam folder (RFC 6430).

    The time is the report's own, `timestamp`; `arrivalDate` is when the mail had arrived (RFC 5965).
    """
    kind = word(section.complaint_feedback_type)
    types: Facts = {"complaint_type": kind, "complaint_subtype": word(section.complaint_sub_type)}
    named = [each.email_address for each in section.complained_recipients or []]
    if kind == "not-spam":
        yield Meaning(None, _filled(types), named, detail="reported as not spam")
        return
    facts = _filled({"complainedAt": at, **types})
    # Of several, one complained and SES does not say which: nobody is suppressed for another.
    suppress: Literal["complaint"] | None = "complaint" if len(set(named)) == 1 else None
    yield Meaning("complained", facts, named, suppress, f"complaint ({kind or 'no type'})")


def _delay(section: EventObject, at: int) -> Iterator[Meaning]:
    kind = word(section.delay_type)
    named = [each.email_address for each in section.delayed_recipients or []]
    yield Meaning(None, _filled({"delayedAt": at, "delay_type": kind}), named, detail=f"delayed ({kind})")


def _refused(code: str, what: str) -> Reader:
    def read(section: EventObject, at: int) -> Iterator[Meaning]:
        reason = section.reason or section.error_message
        facts: Facts = {"undeliveredAt": at, "error_code": code}
        yield Meaning("undelivered", facts, detail=f"{what}: {reason}" if reason else what)

    return read


def _always(status: Status | None, fact: str = "") -> Reader:
    """The same of every event of its type. The time of the event is written under `fact`."""

    def read(_section: EventObject, at: int) -> Iterator[Meaning]:
        yield Meaning(status, {fact: at} if fact else {})

    return read


def _filled(facts: Facts) -> Facts:
    return {name: value for name, value in facts.items() if value != ""}


READERS: dict[str, tuple[str, Reader]] = {
    "Send": ("send", _always("sent")),
    "Delivery": ("delivery", _delivery),
    "Bounce": ("bounce", _bounce),
    "Complaint": ("complaint", _complaint),
    "Reject": ("reject", _refused("Reject", "rejected by SES")),
    "Rendering Failure": ("failure", _refused("Rendering Failure", "template not rendered by SES")),
    "DeliveryDelay": ("deliveryDelay", _delay),
    "Open": ("open", _always(None, "openedAt")),
    "Click": ("click", _always(None, "clickedAt")),
    "Subscription": ("subscription", _always(None)),  # of the mail it says only that it was sent
}
"""Each type of event, the object that describes it, and what that means."""
TELLING = {"Delivery", "Bounce", "Complaint"}
"""Types that say nothing without their object."""
