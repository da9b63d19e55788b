"""Events of Amazon SES: of a configuration set (`eventType`) and of an identity (`notificationType`)."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from mailroom.feedback import bounded, correlation
from mailroom.feedback.correlation import Header
from mailroom.feedback.recipients import Destination
from mailroom.feedback.ses_facts import READERS, TELLING, Reader, Section, Told
from mailroom.message.message import Key
from mailroom.message.outcome import Event
from mailroom.telemetry import count, logger


class Mail(Struct, frozen=True, rename="camel"):
    """The mail that an event is about. An identity's notices have no tags, and headers where asked for."""

    timestamp: str = ""
    message_id: str | None = None
    destination: list[str] | None = None
    headers: list[Header] | None = None
    headers_truncated: bool | str | None = None  # the guide says a string, its examples have a boolean
    tags: dict[str, list[str]] | None = None


def read(kind: str, words: Mapping[str, Any]) -> list[Event]:
    """What an event of a type in READERS says: one Event, or for a bounce of several recipients one for each
    reason; [] where nothing names a mail of Mailroom's. Raises Malformed for an event of such a mail that
    cannot be understood, and for values that no event of SES has.

    Whatever its tags say, it is a mail's: no event of SES reaches another channel's item.
    """
    raw = words.get("mail")
    mail = Mail() if raw is None else bounded.convert("`mail` of an SES event", raw, Mail)
    truncated = mail.headers_truncated in {True, "true"}
    found = correlation.find(mail.headers or (), mail.tags or {}, truncated=truncated)
    if found is None:
        logger.info("event of a mail that is not Mailroom's", kind=kind)
        count("EventsUncorrelated")
        return []
    section, telling = _section(kind, words)
    sent_at = bounded.time("mail.timestamp", mail.timestamp)
    at = bounded.time("timestamp", section.timestamp) if section.timestamp else sent_at
    destination = Destination(mail.destination or ())
    events = []
    for each in telling(section, at):
        told, recipients = _concerned(each, destination)
        events.append(
            Event(
                key=Key(found.id, "mail"),
                attempt=found.attempt,
                provider="ses",
                provider_id=bounded.provider_id(mail.message_id),
                kind=kind,
                status=told.status,
                facts={"sentAt": sent_at, **told.facts},
                recipients=recipients,
                several=destination.several or len(recipients) > 1,
                suppress=told.suppress,
                at=at,
                detail=bounded.sentence(told.detail),
            )
        )
    return events


def _section(kind: str, words: Mapping[str, Any]) -> tuple[Section, Reader]:
    name, telling = READERS[kind]
    found = words.get(name)
    if found is None and kind not in TELLING:
        return Section(), telling
    return bounded.convert(f"`{name}` of an SES event", found, Section), telling


def _concerned(told: Told, destination: Destination) -> tuple[Told, tuple[str, ...]]:
    """Whom it is about; () is all of the mail's recipients. So an event that is about some of several, and
    does not say whom, is taken for what it still proves: that SES has the mail."""
    if told.named is None:
        return told, () if destination.several else destination.known
    recipients = destination.among(told.named)
    if recipients or not destination.several:
        return told, recipients
    return Told("sent", {}), ()
