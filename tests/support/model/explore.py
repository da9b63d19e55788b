"""Every world that can be reached, breadth first, and the shortest way to one that breaks a promise."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tests.support.model.invariants import broken_by, broken_in
from tests.support.model.ledger import LedgerModel
from tests.support.model.world import Channel, Step, Steps, World, first

STUCK = "no message is stuck"


@dataclass(frozen=True)
class Exploration:
    """Result of an exploration: how many worlds and steps, the broken promise or an empty text, and the steps
    to it."""

    worlds: int
    steps: int
    broken: str
    trace: tuple[str, ...]
    model: LedgerModel


class _Arrival(NamedTuple):
    """How a world was reached first: by that step of the world of that number."""

    parent: int
    step: int


def explore(channel: Channel, *without: str) -> Exploration:
    """Until a promise is broken, or all is seen. `without`: see LedgerModel."""
    model = LedgerModel(*without)
    steps = Steps(channel, model)
    worlds = [first(channel)]
    numbers = {worlds[0]: 0}  # of each world, its place in `worlds`: to hash a world takes long
    arrivals = [_Arrival(0, 0)]
    onward: list[list[int]] = []
    count = 0
    for parent, world in enumerate(worlds):  # grows meanwhile
        onward.append([])
        for at, step in enumerate(steps.of(world)):
            count += 1
            after, broken = ordered(world, step.after), broken_by(world, step)
            number = numbers.setdefault(after, len(worlds))
            if number == len(worlds):
                worlds.append(after)
                arrivals.append(_Arrival(parent, at))
                broken = broken or broken_in(after, channel)
            if broken:
                trace = [*_trace(parent, worlds, arrivals), (world, at)]
                return Exploration(len(worlds), count, broken, _told(trace, steps), model)
            if step.of_workers:
                onward[parent].append(number)
    stuck = _stuck(worlds, onward)
    trace = [] if stuck is None else _trace(stuck, worlds, arrivals)
    return Exploration(len(worlds), count, "" if stuck is None else STUCK, _told(trace, steps), model)


def ordered(before: World, after: World) -> World:
    """The world without workers that are gone; who of the others is who makes no difference."""
    if after.workers is before.workers:
        return after
    return after._replace(workers=tuple(sorted(each for each in after.workers if each)))


def _stuck(worlds: list[World], onward: list[list[int]]) -> int | None:
    """The first world from which workers and time alone do not lead to an outcome and an empty queue."""
    before: list[list[int]] = [[] for _ in worlds]
    for number, reached in enumerate(onward):
        for each in reached:
            before[each].append(number)
    good = [
        number
        for number, world in enumerate(worlds)
        if world.item and world.item.completed and not (world.queue or world.workers)
    ]
    known = set(good)
    for number in good:  # grows meanwhile
        new = {*before[number]} - known
        known |= new
        good += new
    return next((number for number in range(len(worlds)) if number not in known), None)


def _trace(number: int, worlds: list[World], arrivals: list[_Arrival]) -> list[tuple[World, int]]:
    """The steps to a world, each by the world before and its number there."""
    trace = []
    while number:
        number, step = arrivals[number]
        trace.append((worlds[number], step))
    return trace[::-1]


def _told(trace: list[tuple[World, int]], steps: Steps) -> tuple[str, ...]:
    """A trace in words; workers are A, B, C by the order in which they come."""
    return tuple(_lines(trace, steps))


def _lines(trace: list[tuple[World, int]], steps: Steps) -> Iterator[str]:
    names: list[str] = []
    came = 0
    for world, number in trace:
        step: Step = [*steps.of(world)][number]
        if len(step.after.workers) > len(world.workers):
            names.append(chr(ord("A") + came))
            came += 1
        who = names[step.who] if isinstance(step.who, int) else step.who
        yield f"{who} {step.does}"
        left = sorted((each, name) for each, name in zip(step.after.workers, names, strict=True) if each)
        names = [name for _, name in left]
