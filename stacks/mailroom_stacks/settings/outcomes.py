"""Settings of outcomes: the reader of the ledger's stream, and the EventBridge bus of outcome events."""

from pydantic import Field

from mailroom_stacks.settings.queues import Stream


class Outcomes(Stream):
    """Function that turns changes of the ledger into callbacks, further attempts of faxes, and events."""

    event_bus: str | None = Field(
        default=None,
        pattern=r"^(arn:aws[a-z-]*:events:[a-z0-9-]+:[0-9]{12}:event-bus/)?[A-Za-z0-9._/-]{1,256}$",
    )
    """Name or ARN of the EventBridge bus that gets an event for each outcome; null means no events."""
