"""Outcomes: how the ledger's stream is read, and which bus hears of what it tells."""

from pydantic import Field

from mailroom_stacks.settings.queues import Stream


class Outcomes(Stream):
    """The function that turns the ledger's changes into callbacks, further attempts and events."""

    event_bus: str | None = Field(
        default=None,
        pattern=r"^(arn:aws[a-z-]*:events:[a-z0-9-]+:[0-9]{12}:event-bus/)?[A-Za-z0-9._/-]{1,256}$",
    )
    """The EventBridge bus that gets an event for each outcome: its name or its ARN. null: no events."""
