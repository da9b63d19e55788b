"""Reads events of Amazon SES: events of a configuration set (`eventType`), and notifications of an identity
(`notificationType`)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from mailroom.message import address
from mailroom.message.message import Key, Reference
from mailroom.message.outcome import Event, Facts, Status
from mailroom.providers import values
from mailroom.providers.meaning import KINDS, Meaning, bounced, filled
from mailroom.providers.received import Received
from mailroom.providers.values import sentence, word
from mailroom.telemetry import count, logger

HEADER = "x-correlation-id"
"""Name, in lower case, of the header that contains the reference in mails sent by Mailroom."""


class Header(Struct, frozen=True):
    """A header of the mail that the event is about."""

    name: str = ""
    value: str | None = None


class MailObject(Struct, frozen=True, rename="camel"):
    """The mail that an event is about. In notifications of an identity, tags are always missing, and headers
    are present only if the identity is configured to include them."""

    timestamp: str = ""
    message_id: str | None = None
    destination: list[str] | None = None
    headers: list[Header] | None = None
    headers_truncated: bool | str | None = None
    """Whether SES has cut the list of headers. SES's user guide describes a string ("true"), but the examples
    there have a boolean."""
    tags: dict[str, list[str]] | None = None


class EventRecipient(Struct, frozen=True, rename="camel"):
    """A recipient whose mail bounced or is delayed, or who complained."""

    email_address: str = ""
    diagnostic_code: str | None = None
    """Error message of the last mail server; missing if that server did not send a delivery status
    notification."""


class EventObject(Struct, frozen=True, rename="camel"):
    """Object in an event that describes the delivery, the bounce, the complaint or another occurrence. The
    class has the fields that Mailroom reads, for all event types together."""

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


Reader = Callable[[EventObject, int], Iterator[Meaning]]
"""Function that returns the meanings of an event's object; the number is the event's time in epoch
milliseconds."""


class Destination:
    """The recipients of a mail, from the field `destination` of an event.

    A bounce lists the address that the last mail server tried (RFC 3464's Final-Recipient). If the mail was
    forwarded, this may be the address of a person to whom Mailroom did not send the mail. So listed addresses
    are ignored unless they are in the destination. If the destination is a single mailbox, the event is about
    this mailbox, whichever addresses the event lists. If the destination is empty, all listed addresses are
    used.
    """

    def __init__(self, destination: Iterable[str]) -> None:
        mailboxes = {address: _mailbox(address) for address in destination}
        self.mailboxes = dict.fromkeys(mailbox for mailbox in mailboxes.values() if mailbox is not None)
        self.several = len({mailbox or address for address, mailbox in mailboxes.items()}) > 1
        self._listed = bool(mailboxes)

    def recipients(self, addresses: Iterable[str]) -> tuple[str, ...]:
        """Return the addresses listed by an event that are recipients of the mail, without duplicates."""
        if self._listed and not self.several:
            return tuple(self.mailboxes)
        mailboxes = {address: _mailbox(address) for address in addresses}
        recipients = [
            mailbox
            for mailbox in mailboxes.values()
            if mailbox and (mailbox in self.mailboxes or not self._listed)
        ]
        if len(recipients) < len(mailboxes):
            logger.warning("recipients of an event were ignored", recipients=len(mailboxes) - len(recipients))
        return tuple(dict.fromkeys(recipients))


def _mailbox(text: str) -> str | None:
    """Return a mail address without its display name, in lower case and with its domain in ASCII. Return None
    if the text is not a valid address."""
    try:
        return address.bare(text)
    except ValueError:
        return None


def read(received: Received) -> list[Event] | None:
    """Read an event of SES. Return one Event, or, for a bounce of several recipients, one for each diagnostic
    code. Return an empty list for an event about a mail of another program, and None if the event's type is
    not in READERS.

    The channel is always mail, even if the tags contain another one, so events of SES never change items of
    other channels. Raises Malformed if a field has a wrong type, or if an event about Mailroom's mail lacks a
    required field.
    """
    kind, payload = received.kind, received.payload
    if kind not in READERS:
        return None
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
    """Return the part of an event's meaning that is certain, and the recipients it is about. The tuple of
    recipients is empty if the event is about the whole mail.

    If a mail has several recipients, and the event only lists other addresses, the event only proves that SES
    has accepted the mail.
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

    Mailroom writes the reference to the header and to the tags. If the two differ, the header is used: a
    producer cannot write this header, while a tag may be a default of the configuration set. If several
    headers contain different references, all of them are ignored. The last header of a `truncated` list is
    ignored too: it may be cut, and a part of a reference could be the reference of another message.

    A header that is not a reference comes from another program. Many programs write an X-Correlation-ID, and
    they use the stage's configuration set if it is the default of their identity.
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
    """Yield the meaning of a bounce once for each diagnostic code, because a mail may bounce at different
    recipients for different reasons."""
    kind, subtype = word(section.bounce_type), word(section.bounce_sub_type)
    for code, addresses in _by_code(section.bounced_recipients or []).items():
        yield bounced(kind, subtype, code, time_ms, addresses)


def _by_code(recipients: list[EventRecipient]) -> dict[str, list[str]]:
    codes: dict[str, list[str]] = {}
    for recipient in recipients:
        codes.setdefault(sentence(recipient.diagnostic_code or ""), []).append(recipient.email_address)
    return codes or {"": []}


def _complaint(section: EventObject, time_ms: int) -> Iterator[Meaning]:
    """Read a complaint. The type `not-spam` is the opposite of a complaint: a person took the mail out of the
    spam folder (RFC 6430).

    The time of the complaint is `timestamp`. The field `arrivalDate` is the time at which the mail arrived
    (RFC 5965).
    """
    kind = word(section.complaint_feedback_type)
    types: Facts = {"complaint_type": kind, "complaint_subtype": word(section.complaint_sub_type)}
    addresses = [recipient.email_address for recipient in section.complained_recipients or []]
    if kind == "not-spam":
        yield Meaning(None, filled(types), addresses, detail="reported as not spam")
        return
    facts = filled({"complainedAt": time_ms, **types})
    # If the event lists several recipients, any of them may have complained, so none is suppressed.
    suppress: Literal["complaint"] | None = "complaint" if len(set(addresses)) == 1 else None
    detail = KINDS.get(kind, f"complaint ({kind or 'no type'})")
    yield Meaning("complained", facts, addresses, suppress, detail)


def _delay(section: EventObject, time_ms: int) -> Iterator[Meaning]:
    kind = word(section.delay_type)
    addresses = [recipient.email_address for recipient in section.delayed_recipients or []]
    facts = filled({"delayedAt": time_ms, "delay_type": kind})
    yield Meaning(None, facts, addresses, detail=f"delayed ({kind})")


def _not_sent(code: str, problem: str) -> Reader:
    def read(section: EventObject, time_ms: int) -> Iterator[Meaning]:
        reason = section.reason or section.error_message
        facts: Facts = {"undeliveredAt": time_ms, "error_code": code}
        yield Meaning("undelivered", facts, detail=f"{problem}: {reason}" if reason else problem)

    return read


def _always(status: Status | None, fact: str = "") -> Reader:
    """Create a reader that returns `status` for every event. If `fact` is not empty, the event's time becomes
    the ledger attribute of this name."""

    def read(_section: EventObject, time_ms: int) -> Iterator[Meaning]:
        yield Meaning(status, {fact: time_ms} if fact else {})

    return read


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
    "Subscription": ("subscription", _always(None)),  # this event only proves that the mail was sent
}
"""Name of the object that describes the event, and the function that reads the object, by the event's
type."""
OBJECT_REQUIRED = {"Delivery", "Bounce", "Complaint"}
"""Types of events that are malformed if the object that describes the event is missing."""
