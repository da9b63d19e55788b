"""The examination of what lies in dead-letter queues."""

from collections.abc import Iterator

from pydantic import Field

from stacks.settings.sections import Function


class DeadLetters(Function):
    """The function that looks at what lies in dead-letter queues."""

    timeout_seconds: int = Field(default=300, ge=30, le=900)
    """Ten seconds of the time-out are kept for putting dead letters back."""
    every_minutes: int = Field(default=60, ge=1, le=1_440)
    """The function looks when an alarm begins, and every so many minutes: an alarm that rings already says
    nothing of further dead letters."""


def dead_letters_faults(chosen: DeadLetters) -> Iterator[str]:
    """Rules of the section `dead_letters`."""
    if chosen.timeout_seconds > chosen.every_minutes * 60:
        yield (
            f"dead_letters.timeout_seconds: {chosen.timeout_seconds} is over every_minutes "
            f"{chosen.every_minutes} x 60: two passes would hide dead letters from each other; use "
            f"{chosen.every_minutes * 60} or less."
        )
