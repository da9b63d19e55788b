"""Content of a feedback queue message, from which each provider's readers take their events."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from mailroom.message.outcome import Event
from mailroom.providers.keywords import KNOWN, Keywords, KeywordText

FeedbackItem = Event | KeywordText


class Received(Struct, frozen=True):
    """Payload of a queue message, and what readers need of the stage."""

    payload: Mapping[str, Any]
    """Provider's payload, without SNS's envelope."""
    region: str = ""
    """Country of numbers without a country code."""
    words: Keywords = KNOWN
    """Keywords by which the stage recognises STOP and START."""
    published: str = ""
    """Time at which SNS published the payload (ISO 8601); empty without an envelope."""

    @property
    def kind(self) -> str | None:
        """Type of an event of an AWS service, or None if the payload has none."""
        kind = self.payload.get("eventType", self.payload.get("notificationType"))
        return kind if isinstance(kind, str) else None
