"""Reads a record of the feedback queue, whoever wrote it, into events."""

from collections.abc import Container, Mapping
from typing import Any

from mailroom.errors import Malformed
from mailroom.feedback import bounded, envelope, ses_events, sms_events, twilio_status
from mailroom.feedback.ses_facts import READERS
from mailroom.message.outcome import Event
from mailroom.telemetry import count, logger


class PartlyMalformed(Malformed):
    """A batch of which some cannot be understood; `events` are those of the others, and good."""

    def __init__(self, fault: Malformed, events: list[Event]) -> None:
        super().__init__(str(fault))
        self.events = events


def read(body: str, topics: Container[str], region: str = "") -> list[Event]:
    """The events in a body; [] for what needs no action, which is logged and counted.

    `topics` are the SNS topics that are believed, `region` is where a number without a country belongs.
    Raises Malformed for what cannot be understood, PartlyMalformed where that is a part of a batch. No fault
    and no line of the log quotes the body.
    """
    events: list[Event] = []
    fault: Malformed | None = None
    for each in envelope.contents(body):
        try:
            events += _read(each, topics, region)
        except Malformed as malformed:
            fault = fault or malformed
    if fault is not None:
        raise PartlyMalformed(fault, events) if events else fault
    return events


def _read(value: Any, topics: Container[str], region: str) -> list[Event]:
    if isinstance(value, dict) and value.get("source") == twilio_status.SOURCE:
        return twilio_status.read(value, region)
    words = envelope.opened(value, topics)
    return [] if words is None else _said(words, region)


def _said(words: Mapping[str, Any], region: str) -> list[Event]:
    kind = words.get("eventType", words.get("notificationType"))
    if not isinstance(kind, str):
        raise Malformed("neither an event of SES nor one of an SMS nor a callback of Twilio")
    if kind in READERS:
        return ses_events.read(kind, words)
    if kind.startswith(sms_events.PREFIXES):
        return sms_events.read(words, region)
    logger.warning("an event of a type that is not known", kind=bounded.word(kind))
    count("EventsUnknown")
    return []
