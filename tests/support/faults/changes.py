"""Settings that change while messages are under way."""

from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar

from tests.support.faults.outside import Outside, Side


class Changeable(Protocol):
    """A world whose new processes begin with what `changed` says of their settings by then."""

    outside: Outside
    changed: dict[str, Any]

    def settle(self) -> None:
        """All functions run until nothing is left to do."""


W = TypeVar("W", bound=Changeable)


def changed(begun: Callable[[], W], after: dict[str, Any]) -> Iterator[tuple[W, str]]:
    """A world for each outside call at which the settings change: there the function goes on, or stops after
    the call. A stop before it leaves the world that a stop after the call before leaves. Whoever starts after
    that has the new settings."""
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
