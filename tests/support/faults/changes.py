"""Settings that change while messages are in progress."""

from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar

from tests.support.faults.outside import Outside, Side


class Changeable(Protocol):
    """A world whose new processes read their settings from `changed`."""

    outside: Outside
    changed: dict[str, Any]

    def settle(self) -> None:
        """Run all functions until no work is left."""


W = TypeVar("W", bound=Changeable)


def each_change(begun: Callable[[], W], after: dict[str, Any]) -> Iterator[tuple[W, str]]:
    """Yield a world for each external call at which the settings change.

    The function that made the call goes on, or stops after it. A stop before a call equals a stop after the
    previous one. Processes that start later have the new settings.
    """
    whole = begun()
    whole.settle()
    sides: tuple[Side | None, ...] = (None, "after")
    for at, call in enumerate(whole.outside.calls):
        for side in sides:
            world = begun()
            world.outside.intrude = (at, lambda world=world: world.changed.update(after))
            world.outside.stop = None if side is None else (at, side)
            world.settle()
            yield world, f"{side or 'at'} {call} ({at})"
