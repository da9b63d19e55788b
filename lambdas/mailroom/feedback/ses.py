"""Events of Amazon SES: of a configuration set (`eventType`) and of an identity (`notificationType`)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from mailroom.feedback import values
from mailroom.feedback.values import sentence, word
from mailroom.message import address
from mailroom.message.message import Key, Reference
from mailroom.message.outcome import Event, Facts, Status
from mailroom.telemetry import count, logger

HEADER = "x-correlation-id"
"""Header of Mailroom's mails that holds the reference, in lower case."""


class Header(Struct, frozen=True):
    """A header of the submitted mail."""

    name: str = ""
    value: str | None = None


class MailObject(Struct, frozen=True, rename="camel"):
    """The mail that an event is about. Notifications of an identity lack tags, and have headers only if the
    identity is configured to include them."""

    timestamp: str = ""
    message_id: str | None = None
    destination: list[str] | None = None
    headers: list[Header] | None = None
    headers_truncated: bool | str | None = None
    """True or "true": SES's user guide describes a string, but its examples have a boolean."""
    tags: dict[str, list[str]] | None = None


class EventRecipient(Struct, frozen=True, rename="camel"):
    """A recipient who bounced, complained or whose mail is delayed."""

    email_address: str = ""
    diagnostic_code: str | None = None
    """Error of the last mail server, present only if that server sent a delivery status notification."""


class EventObject(Struct, frozen=True, rename="camel"):
    """The object that describes the event; a union of the fields that Mailroom reads, of all event types."""

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
    """The effect of an event on recipients."""

    status: Status | None
    """Status that the event proves; None for an event that only adds facts."""
    facts: Facts
    addresses: list[str] | None = None
    """Recipients that the event lists, or None if it is about the whole mail."""
    suppress: Literal["bounce", "complaint"] | None = None
    """Reason to put the recipients on the suppression list."""
    detail: str = ""


Reader = Callable[[EventObject, int], Iterator[Meaning]]
"""Reads an event's object; the number is the event's time in epoch milliseconds."""


class Destination:
    """The recipients of a mail, by the `destination` of the event.

    A bounce lists the address that the last mail server tried, the Final-Recipient of RFC 3464. After a
    forwarding this may be a person to whom Mailroom sent no mail, so an event counts only for recipients in
    the destination. If the destination is one mailbox, the event is about that mailbox, whatever it lists. If
    the destination is empty, the event counts for the recipients that it lists.
    """

    def __init__(self, destination: Iterable[str]) -> None:
        mailboxes = {address: _mailbox(address) for address in destination}
        self.mailboxes = dict.fromkeys(mailbox for mailbox in mailboxes.values() if mailbox is not None)
        self.several = len({mailbox or address for address, mailbox in mailboxes.items()}) > 1
        self._listed = bool(mailboxes)

    def recipients(self, addresses: Iterable[str]) -> tuple[str, ...]:
        """Return the mail's recipients among the addresses that an event lists, without duplicates."""
        if self._listed and not self.several:
            return tuple(self.mailboxes)
        mailboxes = {address: _mailbox(address) for address in addresses}
        recipients = [
            mailbox
            for mailbox in mailboxes.values()
            if mailbox and (mailbox in self.mailboxes or not self._listed)
        ]
        if len(recipients) < len(mailboxes):
            logger.warning("recipients of an event left out", recipients=len(mailboxes) - len(recipients))
        return tuple(dict.fromkeys(recipients))


def _mailbox(text: str) -> str | None:
    """Return a mail address without name, in lower case and with its domain in ASCII, or None if the text is
    invalid as an address."""
    try:
        return address.bare(text)
    except ValueError:
        return None


def read(kind: str, payload: Mapping[str, Any]) -> list[Event]:
    """Read an event whose type is in READERS: one Event, or one for each reason if several recipients
    bounced. The list is empty if the event is about another program's mail.

    Whatever the tags contain, the event is about a mail: SES's events never change another channel's item.
    Raises Malformed if a field has a wrong type, or if an event about Mailroom's mail lacks a required field.
    """
    raw = payload.get("mail")
    mail = MailObject() if raw is None else values.convert("`mail` of an SES event", raw, MailObject)
    truncated = mail.headers_truncated in {True, "true"}
    reference = find(mail.headers or (), mail.tags or {}, truncated=truncated)
    if reference is None:
        logger.info("event of a mail that is not Mailroom's", kind=kind)
        count("EventsUncorrelated")
        return []
    section, reader = _section(kind, payload)
    sent_ms = values.time("mail.timestamp", mail.timestamp)
    time_ms = values.time("timestamp", section.timestamp) if section.timestamp else sent_ms
    destination = Destination(mail.destination or ())
    events = []
    for reported in reader(section, time_ms):
        meaning, recipients = _provable(reported, destination)
        events.append(
            Event(
                key=Key(reference.id, "mail"),
                attempt=reference.attempt,
                provider="ses",
                provider_id=values.provider_id(mail.message_id),
                kind=kind,
                status=meaning.status,
                facts={"sentAt": sent_ms, **meaning.facts},
                recipients=recipients,
                several=destination.several or len(recipients) > 1,
                suppress=meaning.suppress,
                at=time_ms,
                detail=sentence(meaning.detail),
            )
        )
    return events


def _section(kind: str, payload: Mapping[str, Any]) -> tuple[EventObject, Reader]:
    name, reader = READERS[kind]
    section = payload.get(name)
    if section is None and kind not in OBJECT_REQUIRED:
        return EventObject(), reader
    return values.convert(f"`{name}` of an SES event", section, EventObject), reader


def _provable(meaning: Meaning, destination: Destination) -> tuple[Meaning, tuple[str, ...]]:
    """Return the part of the meaning that is certain, and the recipients; an empty tuple stands for the whole
    mail.

    If an event is about some of several recipients, but lists only unknown addresses, it still proves that
    SES has accepted the mail.
    """
    if meaning.addresses is None:
        return meaning, () if destination.several else tuple(destination.mailboxes)
    recipients = destination.recipients(meaning.addresses)
    if recipients or not destination.several:
        return meaning, recipients
    return Meaning("sent", {}), ()


def find(
    headers: Sequence[Header], tags: Mapping[str, Sequence[str]], *, truncated: bool
) -> Reference | None:
    """Return the reference in a mail's header or else in its tags, or None if another program sent the mail.

    Mailroom writes both. The header wins if they differ: it is in the mail itself, and the contract does not
    let a producer write it, while a tag may be a default of the configuration set. Several different
    references in headers are ignored. The last header of a `truncated` list is ignored too: it may be cut,
    and a part of a reference could be the reference of another message.

    A header that does not parse comes from another program: many write an X-Correlation-ID, and their mails
    use the stage's configuration set if it is the default of their identity.
    """
    complete = headers[:-1] if truncated else headers
    texts = {header.value.strip() for header in complete if header.name.lower() == HEADER and header.value}
    by_headers = {reference for reference in map(Reference.found_in, texts) if reference is not None}
    by_header = by_headers.pop() if len(by_headers) == 1 else None
    by_tags = Reference.of_tags({name: tag_values[0] for name, tag_values in tags.items() if tag_values})
    if by_header is not None and by_tags is not None and by_header.id == by_tags.id:
        return max(by_header, by_tags, key=lambda reference: reference.attempt)
    return by_header or by_tags


def _delivery(section: EventObject, time_ms: int) -> Iterator[Meaning]:
    yield Meaning("delivered", {"deliveredAt": time_ms}, section.recipients or [])


def _bounce(section: EventObject, time_ms: int) -> Iterator[Meaning]:
    """Yield one meaning for each diagnostic code: a mail's recipients may bounce for different reasons.

    Permanent is a hard bounce. Transient means that SES gave up for now, or that an out-of-office reply came.
    After Undetermined the address may be valid.
    """
    kind, subtype = word(section.bounce_type), word(section.bounce_sub_type)
    soft = kind == "Transient"
    types: Facts = {"bounce_type": kind, "bounce_subtype": subtype}
    name = {"Permanent": "hard bounce", "Transient": "soft bounce"}.get(kind, "bounce")
    for code, addresses in _by_code(section.bounced_recipients or []).items():
        yield Meaning(
            "undelivered" if soft else "bounced",
            _filled({"undeliveredAt" if soft else "bouncedAt": time_ms, **types, "diagnostic_code": code}),
            addresses,
            "bounce" if kind == "Permanent" else None,
            f"{name} ({subtype or 'no subtype'})" + (f": {code}" if code else ""),
        )


def _by_code(recipients: list[EventRecipient]) -> dict[str, list[str]]:
    codes: dict[str, list[str]] = {}
    for recipient in recipients:
        codes.setdefault(sentence(recipient.diagnostic_code or ""), []).append(recipient.email_address)
    return codes or {"": []}


def _complaint(section: EventObject, time_ms: int) -> Iterator[Meaning]:
    """Read a complaint. `not-spam` is the opposite: a person took the mail out of the spam folder (RFC 6430).

    The complaint's time is `timestamp`; `arrivalDate` is when the mail arrived (RFC 5965).
    """
    kind = word(section.complaint_feedback_type)
    types: Facts = {"complaint_type": kind, "complaint_subtype": word(section.complaint_sub_type)}
    addresses = [recipient.email_address for recipient in section.complained_recipients or []]
    if kind == "not-spam":
        yield Meaning(None, _filled(types), addresses, detail="reported as not spam")
        return
    facts = _filled({"complainedAt": time_ms, **types})
    # Several addresses are candidates for the one recipient who complained, so none is suppressed.
    suppress: Literal["complaint"] | None = "complaint" if len(set(addresses)) == 1 else None
    yield Meaning("complained", facts, addresses, suppress, f"complaint ({kind or 'no type'})")


def _delay(section: EventObject, time_ms: int) -> Iterator[Meaning]:
    kind = word(section.delay_type)
    addresses = [recipient.email_address for recipient in section.delayed_recipients or []]
    facts = _filled({"delayedAt": time_ms, "delay_type": kind})
    yield Meaning(None, facts, addresses, detail=f"delayed ({kind})")


def _not_sent(code: str, problem: str) -> Reader:
    def read(section: EventObject, time_ms: int) -> Iterator[Meaning]:
        reason = section.reason or section.error_message
        facts: Facts = {"undeliveredAt": time_ms, "error_code": code}
        yield Meaning("undelivered", facts, detail=f"{problem}: {reason}" if reason else problem)

    return read


def _always(status: Status | None, fact: str = "") -> Reader:
    """Create a reader that returns `status`, and writes the event's time into the attribute `fact`, if
    any."""

    def read(_section: EventObject, time_ms: int) -> Iterator[Meaning]:
        yield Meaning(status, {fact: time_ms} if fact else {})

    return read


def _filled(facts: Facts) -> Facts:
    return {name: value for name, value in facts.items() if value != ""}


READERS: dict[str, tuple[str, Reader]] = {
    "Send": ("send", _always("sent")),
    "Delivery": ("delivery", _delivery),
    "Bounce": ("bounce", _bounce),
    "Complaint": ("complaint", _complaint),
    "Reject": ("reject", _not_sent("Reject", "rejected by SES")),
    "Rendering Failure": ("failure", _not_sent("Rendering Failure", "template not rendered by SES")),
    "DeliveryDelay": ("deliveryDelay", _delay),
    "Open": ("open", _always(None, "openedAt")),
    "Click": ("click", _always(None, "clickedAt")),
    "Subscription": ("subscription", _always(None)),  # proves only that the mail was sent
}
"""Name of the object that describes the event, and its reader, by the event's type."""
OBJECT_REQUIRED = {"Delivery", "Bounce", "Complaint"}
"""Types whose events are malformed without that object."""
