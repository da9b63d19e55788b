"""The simulation agrees with the plan, lets no station pass more than it can, and loses nothing."""

from typing import Any

import pytest

from bench import scale
from bench.simulation import Simulation
from ops.estimates.lanes import Assumed, Senders, SendingPlan
from ops.estimates.quotas import WHOLE_VCPU_MB
from ops.estimates.stations import Forecast, Load
from tests.support.ops.plan import USUAL, stages_with

RATE = "channels.mail.messages_per_second"
WORKERS = "channels.mail.lanes.bulk.maximum_concurrency"
QUOTA = "monitoring.concurrency_quota"
WIDE: dict[str, Any] = {RATE: 2000, WORKERS: 200, QUOTA: 10_000, "feedback.maximum_concurrency": 100}
WARM = Load(20_000, warm=40_000)


def forecast(
    load: Load,
    changes: dict[str, Any] | None = None,
    lanes: tuple[str, ...] = ("bulk",),
    assumed: Assumed = USUAL,
) -> Forecast:
    stages = stages_with(WIDE | (changes or {}))
    return Forecast.of(stages, "dev", [stages.lane("dev", "mail", each) for each in lanes], load, assumed)


OF_ARTICLE = {WORKERS: 5, "channels.mail.lanes.bulk.batch_size": 3}
CASES: dict[str, Forecast] = {
    "the article's": forecast(Load(3000), OF_ARTICLE, assumed=Assumed(0.5 / 3, 0.1, 0)),
    "a rate": forecast(Load(2000), {RATE: 14, WORKERS: 2}),
    "workers": forecast(Load(5000), {WORKERS: 20}),
    "a slow start": forecast(WARM),
    "two lanes": forecast(WARM, {"channels.mail.lanes.normal.maximum_concurrency": 200}, ("normal", "bulk")),
    "as they are put": forecast(Load(20_000, 200, 40_000)),
    "faster than they are sent": forecast(Load(20_000, 1000, 40_000), {RATE: 1000, WORKERS: 70}),
    "slow events": forecast(WARM, {"feedback.maximum_concurrency": 10}),
    "callbacks": forecast(Load(5000, warm=40_000, callbacks=True)),
    "few functions": forecast(WARM, {QUOTA: 150}),
}


@pytest.mark.parametrize("case", CASES)
def test_the_simulation_takes_as_long_as_the_plan_says(case: str) -> None:
    planned = CASES[case]
    found = Simulation(planned).run()
    assert found.seconds == pytest.approx(planned.seconds, rel=0.1)
    assert found.reported == pytest.approx(planned.reported, rel=0.1, abs=5)


@pytest.mark.parametrize("case", CASES)
def test_no_station_lets_more_pass_than_it_can_and_nothing_is_lost(case: str) -> None:
    planned, found = CASES[case], Simulation(CASES[case]).run()
    for station in planned.ranked:
        assert planned.load.messages / found.seconds <= station.speed
    last = found.samples[-1]
    assert (last.put, last.accepted, last.queued, last.events) == (planned.load.messages,) * 2 + (0, 0)
    for before, after in zip(found.samples, found.samples[1:], strict=False):
        assert before.accepted <= after.accepted <= after.put
        assert after.queued + after.accepted <= after.put
        assert after.workers <= sum(plan.senders.workers for plan in planned.plans)


@pytest.mark.parametrize(
    ("bound", "load", "changes", "lifts", "keeps"),
    [
        ("rate", WARM, {RATE: 200, WORKERS: 40}, {RATE: 400}, {WORKERS: 80}),
        ("workers", WARM, {WORKERS: 20}, {WORKERS: 40}, {RATE: 4000}),
        ("functions", Load(100_000, warm=40_000), {QUOTA: 150}, {QUOTA: 400}, {WORKERS: 400, RATE: 4000}),
    ],
)
def test_only_the_named_bottleneck_makes_all_faster_where_it_is_lifted(
    bound: str, load: Load, changes: dict[str, Any], lifts: dict[str, Any], keeps: dict[str, Any]
) -> None:
    planned = forecast(load, changes)
    assert planned.bound.name == bound
    now, lifted, same = (
        Simulation(forecast(load, changes | more)).run().seconds for more in ({}, lifts, keeps)
    )
    assert lifted < 0.75 * now
    assert same == pytest.approx(now, rel=0.05)


def test_a_ledger_that_is_too_slow_delays_mails_and_their_events_together() -> None:
    planned = forecast(Load(5000, warm=100))
    found = Simulation(planned).run()
    assert planned.bound.name == "ledger"
    assert found.reported == pytest.approx(planned.reported, rel=0.1)
    # Nobody says who gets the units: where events wait, mails go out sooner, with 2 units each.
    assert 5000 * 2 / 100 <= found.seconds <= 1.1 * planned.seconds


def test_the_same_load_ends_the_same() -> None:
    planned = CASES["callbacks"]
    assert Simulation(planned).run() == Simulation(planned).run()


def test_a_function_sends_as_many_a_second_as_the_bench_measured() -> None:
    held = scale.held_against()
    for at_once in (1, 2, 5, 10):
        assert held[f"function_{at_once}"]["ratio"] == pytest.approx(1, abs=0.15)


@pytest.mark.parametrize("memory_mb", [320, 512, 1024])
def test_the_plan_promises_at_most_a_fifth_more_where_messages_of_a_batch_begin_together(
    memory_mb: int,
) -> None:
    vcpu = memory_mb / WHOLE_VCPU_MB
    # A mail of 0.1 s, of which it computes 5 ms; the rest are SES's answer and the ledger's.
    function = scale.Function(USUAL.computing / vcpu, (0.088, 0.007), between=USUAL.between)
    planned = {n: SendingPlan(Senders(1, 10, None, n, vcpu), USUAL, 1).speed for n in (1, 2, 5, 10)}
    assert function.rate(1) == pytest.approx(planned[1])
    for at_once in (2, 5, 10):
        assert 1 < planned[at_once] / function.rate(at_once) < 1.2


@pytest.mark.parametrize("name", scale.predictions())
def test_every_prediction_has_settings_that_synth_takes(name: str) -> None:
    forecast = scale.predictions()[name].forecast()
    assert forecast.bound.speed < forecast.following.speed
