"""Outcomes: how the ledger's stream is read, and which bus hears of what it tells."""

from collections.abc import Iterator

from pydantic import Field

from mailroom_stacks.settings.queues import Stream


class Outcomes(Stream):
    """The function that turns the ledger's changes into callbacks, further attempts and events."""

    event_bus: str | None = Field(
        default=None,
        pattern=r"^(arn:aws[a-z-]*:events:[a-z0-9-]+:[0-9]{12}:event-bus/)?[A-Za-z0-9._/-]{1,256}$",
    )
    """The EventBridge bus that gets an event for each outcome: its name or its ARN. null: no events."""


def outcomes_faults(outcomes: Outcomes, region: str | None) -> Iterator[str]:
    """Rules of the section `outcomes`, in the region that the stage is pinned to."""
    bus = outcomes.event_bus or ""
    if region is not None and bus.startswith("arn:") and (its := bus.split(":")[3]) != region:
        yield (
            f"outcomes.event_bus: is in region {its}, and events are put only in deployment.region "
            f"{region}; use a bus in {region}, and let a rule of that bus send to the other."
        )
