"""Rules of looking at dead letters."""

from collections.abc import Iterator

from stacks.settings import DeadLetters


def broken_dead_letters(chosen: DeadLetters) -> Iterator[str]:
    """Rules of the section `dead_letters`."""
    if chosen.timeout_seconds > chosen.every_minutes * 60:
        yield (
            f"dead_letters.timeout_seconds: {chosen.timeout_seconds} is over every_minutes "
            f"{chosen.every_minutes} x 60: two passes would hide the letters from each other; use "
            f"{chosen.every_minutes * 60} or less."
        )
