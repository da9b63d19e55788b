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
    """What was found: how many worlds and steps, the broken promise ("": none), and the way there."""

    worlds: int
    steps: int
    broken: str
    trace: tuple[str, ...]
    model: LedgerModel


class _Arrival(NamedTuple):
    """How a world was reached first: by that step of an earlier one."""

    parent: World | None
    step: int


def explore(channel: Channel, *without: str) -> Exploration:
    """Until a promise is broken, or all is seen. `without`: see LedgerModel."""
    model = LedgerModel(*without)
    steps = Steps(channel, model)
    start = first(channel)
    arrivals = {start: _Arrival(None, 0)}
    onward: dict[World, list[World]] = {}
    frontier, count = [start], 0
    for world in frontier:  # grows meanwhile
        onward[world] = []
        for at, step in enumerate(steps.of(world)):
            count += 1
            after, broken = ordered(step.after), broken_by(world, step)
            if after not in arrivals:
                arrivals[after] = _Arrival(world, at)
                frontier.append(after)
                broken = broken or broken_in(after, channel)
            if broken:
                trace = (*_trace(world, arrivals), (world, at))
                return Exploration(len(arrivals), count, broken, _told(trace, steps), model)
            if step.of_workers:
                onward[world].append(after)
    stuck = _stuck(frontier, onward)
    trace = () if stuck is None else _trace(stuck, arrivals)
    return Exploration(len(arrivals), count, STUCK if stuck else "", _told(trace, steps), model)


def ordered(world: World) -> World:
    """The world without workers that are gone; who of the others is who makes no difference."""
    return world._replace(workers=tuple(sorted(each for each in world.workers if each)))


def _stuck(worlds: list[World], onward: dict[World, list[World]]) -> World | None:
    """The first world from which workers and time alone do not lead to an outcome and an empty queue."""
    before: dict[World, list[World]] = {world: [] for world in worlds}
    for world, reached in onward.items():
        for each in reached:
            before[each].append(world)
    good = [
        world
        for world in worlds
        if world.item and world.item.completed and not (world.queue or world.workers)
    ]
    known = set(good)
    for world in good:  # grows meanwhile
        new = [each for each in before[world] if each not in known]
        known.update(new)
        good += new
    return next((world for world in worlds if world not in known), None)


def _trace(world: World, arrivals: dict[World, _Arrival]) -> tuple[tuple[World, int], ...]:
    """The steps to a world, each by the world before and its number there."""
    trace = []
    arrival = arrivals[world]
    while arrival.parent is not None:
        trace.append((arrival.parent, arrival.step))
        arrival = arrivals[arrival.parent]
    return tuple(reversed(trace))


def _told(trace: tuple[tuple[World, int], ...], steps: Steps) -> tuple[str, ...]:
    """A trace in words; workers are A, B, C by the order in which they come."""
    return tuple(_lines(trace, steps))


def _lines(trace: tuple[tuple[World, int], ...], steps: Steps) -> Iterator[str]:
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
