"""A simulation (SimPy) of the stations of `ops.estimates.stations`, with their queues, their batches and
Lambda's slow start, and with what the provider reports.

Nothing is random. All times are in seconds of the simulated world.
"""

import math
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

import simpy

from ops.estimates.lanes import SendingPlan
from ops.estimates.quotas import POLLERS_A_MINUTE
from ops.estimates.stations import Forecast, Pool, Shared

EVENT_SECONDS = 1.0
"""From a provider's answer to its events; assumed."""
SAMPLES = 80
"""Points of a curve, about."""
PUT_TOGETHER = 100
Steps = Generator[simpy.Event, Any, None]


class Meter:
    """Units a second, handed out in the order in which they are asked for."""

    def __init__(self, env: simpy.Environment, units: float) -> None:
        self._env = env
        self._units = units
        self._free = 0.0

    def wait(self, units: float) -> float:
        """Take so many; the seconds until they can be used."""
        now = self._env.now
        start = max(now, self._free)
        self._free = start + units / self._units
        return start - now


class Queue:
    """How many records wait. Whoever finds none waits for some."""

    def __init__(self, env: simpy.Environment, batch: int) -> None:
        self._env = env
        self._batch = batch
        self.depth = 0
        self.routed = 0
        """How many records came."""
        self._idle: deque[simpy.Event] = deque()

    def put(self, count: int) -> None:
        """Add records, and wake as many workers as take them."""
        self.depth += count
        self.routed += count
        for _ in range(min(len(self._idle), -(-count // self._batch))):
            self._idle.popleft().succeed()

    def take(self) -> Generator[simpy.Event, Any, int]:
        """How many records there are in a batch, as soon as there is one."""
        while not self.depth:
            news = self._env.event()
            self._idle.append(news)
            yield news
        taken = min(self.depth, self._batch)
        self.depth -= taken
        return taken


@dataclass(frozen=True)
class Sample:
    """The state at a time: messages that are in the mailbox, wait in the lanes' queues, or are accepted;
    events that wait; and senders that Lambda has begun."""

    time: float
    put: int
    queued: int
    accepted: int
    events: int
    workers: int


@dataclass
class Simulated:
    """What came of a load. `seconds`: until the last message was accepted; `reported`: until all is told;
    `deepest`: the most messages that waited in the queues of the lanes."""

    seconds: float = 0.0
    reported: float = 0.0
    deepest: int = 0
    samples: list[Sample] = field(default_factory=list)


class Simulation:
    """One load at its stations. The provider accepts whatever comes."""

    def __init__(self, forecast: Forecast) -> None:
        self._env = env = simpy.Environment()
        self._forecast, self._load = forecast, forecast.load
        self._stations = {station.name: station for station in forecast.stations}
        self._mailbox, self._ledger = (Meter(env, self._shared(name).total) for name in ("mailbox", "ledger"))
        functions = self._stations.get("functions")
        most = functions.total if isinstance(functions, Shared) else 0
        self._functions = simpy.Container(env, most, most) if most else None
        self._stream = Queue(env, self._pool("dispatch").batch)
        self._lanes = [Queue(env, plan.senders.batch) for plan in forecast.plans]
        self._put = self._routed = self._accepted = self._told = self._workers = 0
        self._untold = self._reports()
        self._done = env.event()
        self._found = Simulated()

    def _shared(self, name: str) -> Shared:
        station = self._stations[name]
        assert isinstance(station, Shared)
        return station

    def _pool(self, name: str) -> Pool:
        station = self._stations[name]
        assert isinstance(station, Pool)
        return station

    def _reports(self) -> dict[str, Queue]:
        """The queue before each station that tells of what was sent."""
        names = [each.name for each in self._forecast.stations if each.reports]
        return {name: Queue(self._env, self._pool(name).batch) for name in names}

    def run(self) -> Simulated:
        """From the first put to the last event."""
        env = self._env
        env.process(self._producer())
        dispatch = self._pool("dispatch")
        for _ in range(dispatch.workers):
            env.process(self._serve(self._stream, lambda n: n * dispatch.seconds, self._route))
        for plan, queue in zip(self._forecast.plans, self._lanes, strict=True):
            self._send(plan, queue)
        for name, queue in self._untold.items():
            self._report(name, queue)
        env.process(self._sampler())
        env.run(until=self._done)
        self._sample()
        return self._found

    def _send(self, plan: SendingPlan, queue: Queue) -> None:
        alone = [plan.lasting(n) for n in range(plan.senders.batch + 1)]
        units = self._shared("ledger").takes("send")

        def lasting(messages: int) -> float:
            return alone[messages] + self._ledger.wait(messages * units)

        workers = plan.senders.at_start, plan.senders.workers
        self._hire(queue, workers, lasting, self._submitted, plan.assumed.between)

    def _report(self, name: str, queue: Queue) -> None:
        pool, units = self._pool(name), self._shared("ledger").takes(name)

        def lasting(records: int) -> float:
            return records * pool.seconds + self._ledger.wait(records * units / pool.records)

        def done(taken: int) -> None:
            if name == "outcomes":
                self._untold["webhook"].put(taken)
            self._told += taken
            self._end()

        self._hire(queue, (pool.at_start, pool.workers), lasting, done, pool.between)

    def _producer(self) -> Steps:
        compose = self._stations.get("compose")
        rate = min(self._load.rate or math.inf, compose.speed if compose else math.inf)
        chunk = max(1, min(PUT_TOGETHER, int(rate / 10))) if rate < math.inf else PUT_TOGETHER
        while self._put < self._load.messages:
            count = min(chunk, self._load.messages - self._put)
            yield self._env.timeout(max(count / rate, self._mailbox.wait(count)))
            self._put += count
            self._stream.put(count)

    def _route(self, taken: int) -> None:
        """Each lane gets its part of what was put."""
        self._routed += taken
        part, before = 0.0, 0
        for plan, queue in zip(self._forecast.plans, self._lanes, strict=True):
            part += plan.messages / self._load.messages
            due = round(self._routed * min(1, part))
            queue.put(due - before - queue.routed)
            before = due
        self._found.deepest = max(self._found.deepest, sum(each.depth for each in self._lanes))

    def _submitted(self, taken: int) -> None:
        self._accepted += taken
        if self._accepted == self._load.messages:
            self._found.seconds = self._env.now
        for name, each in self._untold.items():
            if name != "webhook":
                self._env.process(self._later(each, round(taken * self._pool(name).records)))
        self._end()

    def _later(self, queue: Queue, count: int) -> Steps:
        yield self._env.timeout(EVENT_SECONDS)
        queue.put(count)

    def _end(self) -> None:
        """All is over when the last message is accepted, and told of."""
        told = sum(self._pool(name).records for name in self._untold)
        if self._accepted == self._load.messages and self._told >= told * self._load.messages:
            self._found.reported = self._env.now
            if not self._done.triggered:
                self._done.succeed()

    def _hire(
        self,
        queue: Queue,
        workers: tuple[int, int],
        lasting: Callable[[int], float],
        done: Callable[[int], None],
        between: float,
    ) -> None:
        """Lambda's pollers of a queue: few at start, and more while messages wait."""
        start, most = workers

        def begin() -> None:
            self._workers += queue in self._lanes
            self._env.process(self._serve(queue, lasting, done, between))

        def grow(count: int) -> Steps:
            while count:
                yield self._env.timeout(60 / POLLERS_A_MINUTE.value)
                if queue.depth:
                    count -= 1
                    begin()

        for _ in range(min(start, most)):
            begin()
        if most > start:
            self._env.process(grow(most - start))

    def _serve(
        self,
        queue: Queue,
        lasting: Callable[[int], float],
        done: Callable[[int], None],
        between: float = 0,
    ) -> Steps:
        """A worker: one batch after another."""
        env = self._env
        while True:
            taken = yield from queue.take()
            if self._functions:
                yield self._functions.get(1)
            yield env.timeout(lasting(taken))
            if self._functions:
                self._functions.put(1)
            done(taken)
            if between:
                yield env.timeout(between)

    def _sampler(self) -> Steps:
        step = self._forecast.reported / SAMPLES
        while True:
            self._sample()
            yield self._env.timeout(step)

    def _sample(self) -> None:
        feedback = self._untold.get("feedback")
        self._found.samples.append(
            Sample(
                self._env.now,
                self._put,
                sum(each.depth for each in self._lanes),
                self._accepted,
                feedback.depth if feedback else 0,
                self._workers,
            )
        )
