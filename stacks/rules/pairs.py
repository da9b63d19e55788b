"""A channel of its own needs is a row and a section: each is useless without the other."""

from collections.abc import Iterator

from stacks.settings import Settings

PAIRS = ("sms", "push")


def broken_pairs(settings: Settings) -> Iterator[str]:
    """Rows of `channels` without their section, and sections without their row."""
    for name in PAIRS:
        row, section = name in settings.channels, getattr(settings, name) is not None
        if row and not section:
            yield f"{name}: is missing, and channels.{name} is there; add the section, or remove the row."
        if section and not row:
            yield (
                f"channels.{name}: is missing, and the section {name} is there; add the row, or set "
                f"{name} to null."
            )
