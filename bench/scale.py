"""Loads, predicted by `mailroom plan` and by simulation; and models held against what was measured."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import Any

import simpy

from bench import REPOSITORY
from bench.emulator import PUT_BATCH
from bench.latency import DELAYS_MS
from bench.simulation import Sample, Simulation, Steps
from ops.estimates.lanes import Assumed, Stages
from ops.estimates.prices import QUEUED, measured
from ops.estimates.quotas import TABLE_WRITES
from ops.estimates.stations import Forecast, Load

CURVES = REPOSITORY / "bench" / "scale.json"
"""What is drawn of each prediction."""
LIMITS = REPOSITORY / "docs" / "limits.md"
STAGE, BOTH = "prod", ("normal", "bulk")
CORES, WORKERS = 2, 4
"""The cores of the machine that measured the emulator, and the workers of its lane."""
BATCHES = 10
OF_BATCH = ("BatchExecuteStatement", "BatchGetItem")
"""Calls that a sender makes once for a batch."""


@dataclass(frozen=True)
class Prediction:
    """A load that docs/limits.md predicts: the changes to prod's settings, and what is assumed of a mail."""

    load: Load
    lanes: tuple[str, ...] = BOTH
    changes: Mapping[str, Any] = field(default_factory=dict)
    assumed: Assumed = field(default_factory=lambda: Assumed.of("mail"))

    def forecast(self) -> Forecast:
        """What `mailroom plan` computes of it."""
        stages = Stages.of()
        for key, value in _leaves(self.changes):
            stages = stages.changed(STAGE, key, value)
        lanes = [stages.lane(STAGE, "mail", each) for each in self.lanes]
        return Forecast.of(stages, STAGE, lanes, self.load, self.assumed)


def _leaves(section: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in section.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", value


def rung(rate: int) -> dict[str, Any]:
    """The settings of a rung of the ladder in docs/limits.md."""
    blocks = (
        json.loads(each) for each in re.findall(r"^```json\n(.*?)^```", LIMITS.read_text(), re.M | re.S)
    )
    found: dict[str, Any] = next(
        each for each in blocks if each["channels"]["mail"]["messages_per_second"] == rate
    )
    return found


def predictions() -> dict[str, Prediction]:
    hundred, hour = Load(100_000), Load(1_000_000, 1_000_000 / 3600)
    second = 6_000_000, 10_000
    article = {"messages_per_second": 100_000, "lanes": {"bulk": {"maximum_concurrency": 5, "batch_size": 3}}}
    of_article = Assumed(latency=0.5 / 3, between=0.1, computing=0)
    return {
        "article": Prediction(hundred, ("bulk",), {"channels": {"mail": article}}, of_article),
        "prod": Prediction(hundred, ("bulk",)),
        "hour_prod": Prediction(hour),
        "hour": Prediction(hour, changes=rung(1000)),
        "second_new": Prediction(Load(*second), changes=rung(10_000)),
        "second": Prediction(Load(*second, warm=TABLE_WRITES.value), changes=rung(10_000)),
    }


def measure() -> dict[str, Any]:
    """Simulate all predictions, keep their curves, and hold models against what was measured."""
    times, curves = {}, {}
    for name, prediction in predictions().items():
        forecast = prediction.forecast()
        found = Simulation(forecast).run()
        times[name] = {
            "seconds": round(found.seconds),
            "reported": round(found.reported),
            "deepest": found.deepest,
        }
        bound = "First bound, not reached" if forecast.keeps_up else "Bound"
        curves[name] = {
            "bound": f"{bound}: {forecast.bound.words} ({forecast.bound.limit})",
            "a_second": round(forecast.speed, 2),
            "samples": [_rounded(sample) for sample in found.samples],
        }
    lines = (f'  "{name}": {json.dumps(curve)}' for name, curve in curves.items())
    CURVES.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    return {"scale_simulated": times, "scale_held_against": held_against()}


def _rounded(sample: Sample) -> list[float]:
    time, *counts = astuple(sample)
    return [round(time, 1), *counts]


def held_against() -> dict[str, dict[str, float]]:
    """What the models say of rates that were measured, beside these."""
    figures, pairs = measured(), {}
    dynamodb, ses, _ = (each / 1000 for each in DELAYS_MS["aws"])
    shared = [dynamodb] * round(QUEUED * sum(figures["calls_by_name"][name] for name in OF_BATCH))
    for at_once in (1, 2, 5, 10):
        function = Function(figures["cpu_ms_a_mail"][f"mailroom_{at_once}"] / 1000, (ses, dynamodb), shared)
        seen = figures["mails_a_function_second"][f"mailroom_{at_once}"]
        pairs[f"function_{at_once}"] = (function.rate(at_once), seen)
    pairs["emulator_powertools"] = emulator_rate(1000, "powertools"), figures["rate_1000_powertools"]
    for mails in (1000, 10_000):
        pairs[f"emulator_{mails}"] = emulator_rate(mails, "mailroom"), figures[f"rate_{mails}"]
    return {
        name: {"predicted": round(model, 1), "measured": seen, "ratio": round(model / seen, 2)}
        for name, (model, seen) in pairs.items()
    }


@dataclass(frozen=True)
class Function:
    """A sender: `cpu` seconds of its processor a mail, spread over its calls; the seconds after which each
    call for a mail is answered, and each call for a batch; and the time to the next batch. A call computes
    half of its time before it waits, half afterwards."""

    cpu: float
    calls: Sequence[float]
    of_batch: Sequence[float] = ()
    between: float = 0

    def rate(self, at_once: int) -> float:
        """Mails a second of so many threads, which share the processor and begin each batch together."""
        env = simpy.Environment()
        processor = simpy.Resource(env)

        def thread(left: list[int]) -> Steps:
            while left:
                left.pop()
                yield from self._make(env, self.calls, processor)

        def function() -> Steps:
            for _ in range(BATCHES):
                yield from self._make(env, self.of_batch, processor)
                left = [*range(QUEUED)]
                yield env.all_of([env.process(thread(left)) for _ in range(at_once)])
                yield env.timeout(self.between)

        env.run(until=env.process(function()))
        return BATCHES * QUEUED / float(env.now)

    def _make(self, env: simpy.Environment, calls: Sequence[float], processor: simpy.Resource) -> Steps:
        half = self.cpu / (len(self.calls) + len(self.of_batch) / QUEUED) / 2
        for wait in calls:
            yield from _use(env, processor, half)
            yield env.timeout(wait)
            yield from _use(env, processor, half)


def _use(env: simpy.Environment, resource: simpy.Resource, seconds: float) -> Steps:
    """Have it for so long, as soon as it is free."""
    with resource.request() as turn:
        yield turn
        yield env.timeout(seconds)


def emulator_rate(mails: int, sender: str) -> float:
    """Mails a second of the local stage. The emulator is one process. It takes as long for a call as the rate
    of the pattern by hand shows, which it bounded in the same run. Left out: the simulators of providers, the
    pump and dispatch."""
    figures = measured()
    answer = 1 / figures["rate_1000_pattern"] / _emulator_calls("pattern")
    own = figures[f"cpu_us_http_{sender}"] / 1e6
    env = simpy.Environment()
    cores, emulator = simpy.Resource(env, CORES), simpy.Resource(env)
    left = [mails]

    def worker() -> Steps:
        while left[0]:
            left[0] -= 1
            yield from _use(env, cores, own)
            with emulator.request() as turn:
                yield turn
                yield from _use(env, cores, _emulator_calls(sender) * answer)

    env.run(until=env.all_of([env.process(worker()) for _ in range(WORKERS)]))
    return mails / float(env.now)


def _emulator_calls(sender: str) -> float:
    """Calls for one mail that reach the emulator: its put, its way through the queue (sent, received and
    deleted, and a function invoked, ten at a time), and the sender's own."""
    own = measured()["calls_by_name"]
    ours = own["UpdateItem"] + sum(own[name] for name in OF_BATCH)
    return 1 / PUT_BATCH + 4 / QUEUED + (ours if sender == "mailroom" else 2)
