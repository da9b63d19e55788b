"""Worlds that are stopped at an external call, or in which another function runs just before the call.

Each call gives one world.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Protocol, TypeVar

from tests.support.faults.outside import Outside, Side

SIDES: tuple[Side, ...] = ("before", "after")


class Stoppable(Protocol):
    """A world whose external calls a test can stop."""

    @property
    def outside(self) -> Outside: ...


W = TypeVar("W", bound=Stoppable)


def call_numbers(begin: Callable[[], W], run: Callable[[W], object], least: int = 1) -> range:
    """Return the numbers of the calls that `run` makes in a world of `begin`: `least` or more."""
    world = begin()
    first = len(world.outside.calls)
    run(world)
    numbers = range(first, len(world.outside.calls))
    assert len(numbers) >= least
    return numbers


def stops(begin: Callable[[], W], run: Callable[[W], object], least: int = 1) -> Iterator[tuple[W, str]]:
    """Yield a world for each call of `run`, stopped once before or after the call, with the name of the
    place.
    """
    for number, side in product(call_numbers(begin, run, least), SIDES):
        world = begin()
        world.outside.stop = (number, side)
        run(world)
        assert world.outside.stopped_at is not None
        yield world, f"{world.outside.stopped_at} ({number})"


def each_entry(
    begin: Callable[[], W], run: Callable[[W], object], enter: Callable[[W], object]
) -> Iterator[tuple[W, str]]:
    """Yield a world for each call of `run`, in which `enter` ran just before the call, with the name of the
    place.
    """
    for number in call_numbers(begin, run):
        world = begin()
        world.outside.intrude = (number, partial(enter, world))
        run(world)
        yield world, f"before call {number}"
