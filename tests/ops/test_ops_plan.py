"""`plan`: how long many messages take, and what bounds it."""

import math

import pytest

from mailroom.delivery.worker import Pace
from ops.estimates.lanes import Assumed, ConfiguredLane, Senders, SendingPlan, Stages
from stacks.settings.channels import AT_ONCE, BUSY
from stacks.settings.load import load
from stacks.settings.sentences import SettingsError
from tests.support.ops.plan import CONTEXT, USUAL, answered, context
from tests.support.stacks.refusals import STAGES

ONLY_WAITING = Assumed(latency=0.1, between=0.1, computing=0)
"""Messages that share no processor."""


def test_the_articles_example_takes_67_minutes() -> None:
    # 100,000 mails, 5 at once, batches of 3 that take 0.5 s, and 0.1 s in between.
    assumed = Assumed(latency=0.5 / 3, between=0.1, computing=0)
    plan = SendingPlan(Senders(workers=5, batch=3, rate=None), assumed, 100_000)
    assert plan.invocation == pytest.approx(0.5)
    assert plan.ramp.time_of(100_000) == pytest.approx(4000)
    assert round(plan.ramp.time_of(100_000) / 60) == 67


@pytest.mark.parametrize(("latency", "pace"), [(0.1, 0.0), (0.1, 0.571), (0.3, 0.2), (0.2, 0.2)])
@pytest.mark.parametrize("batch", [1, 3, 10])
def test_an_invocation_takes_what_the_senders_own_pace_makes_of_it(
    latency: float, pace: float, batch: int
) -> None:
    now, slept = [1000.0], 0.0

    def sleep(seconds: float) -> None:
        nonlocal slept
        slept += seconds
        now[0] += seconds

    own = Pace(pace, lambda: now[0], sleep)
    for _ in range(batch):
        own.wait(3600)
        now[0] += latency
    own.rest()
    senders = Senders(4, batch, 4 / pace if pace else None)
    plan = SendingPlan(senders, Assumed(latency, 0.1, 0), 1)
    assert plan.invocation == pytest.approx(now[0] - 1000)
    assert plan.waiting * batch == pytest.approx(slept)


def test_the_rate_bounds_where_the_workers_could_do_more() -> None:
    plan = SendingPlan(Senders(4, 10, 7), USUAL, 100_000)
    assert plan.bound == "rate"
    assert plan.bounds == {"rate": 7, "workers": pytest.approx(40 / 1.1)}
    assert plan.speed < 7


def test_the_workers_bound_where_the_rate_allows_more() -> None:
    plan = SendingPlan(Senders(2, 10, 100), USUAL, 100_000)
    assert plan.bound == "workers"
    # Ten messages of 0.1 s and 0.1 s in between; the gaps of 0.02 s are over meanwhile.
    assert plan.bounds[plan.bound] == pytest.approx(20 / (10 * 0.1 + 0.1))
    assert plan.speed == pytest.approx(plan.bounds[plan.bound])
    assert plan.waiting == pytest.approx(0)


# Ten of 0.1 s each, from a worker with a gap of 0.05 s: 1 / 20 a second.
@pytest.mark.parametrize(
    ("at_once", "invocation", "working"),
    [
        (1, 1.0, 0.1),  # one after another
        (2, 0.55, 0.05),  # five rounds are 0.5 s, but the tenth may begin after nine gaps
        (3, 0.55, 0.04),  # four rounds: three threads have 3 of the 10 each, and one a 4th
        (10, 0.55, 0.01),
    ],
)
def test_threads_share_an_invocation_within_the_pace(at_once: int, invocation: float, working: float) -> None:
    plan = SendingPlan(Senders(1, 10, 20, at_once), ONLY_WAITING, 1)
    assert plan.invocation == pytest.approx(invocation)
    assert plan.working == pytest.approx(working)
    assert plan.waiting == pytest.approx(invocation / 10 - working)
    assert plan.speed == pytest.approx(10 / (invocation + 0.1))


def test_without_a_pace_threads_divide_the_time_of_a_batch() -> None:
    plan = SendingPlan(Senders(4, 10, None, 5), ONLY_WAITING, 1)
    assert plan.invocation == pytest.approx(0.2)
    assert plan.waiting == pytest.approx(0)


@pytest.mark.parametrize(
    ("at_once", "workers_reach", "bound", "needed"),
    [
        (1, 20 / 1.1, "workers", 6),  # 50 a second by 9.09 of each worker
        (2, 20 / 0.6, "workers", 3),  # 16.7
        (5, 20 / 0.3, "rate", 2),  # 33.3
        (10, 20 / 0.2, "rate", 1),  # 50
    ],
)
def test_more_threads_raise_what_the_workers_allow(
    at_once: int, workers_reach: float, bound: str, needed: int
) -> None:
    plan = SendingPlan(Senders(2, 10, 50, at_once), ONLY_WAITING, 1)
    assert plan.bounds == {"rate": 50, "workers": pytest.approx(workers_reach)}
    assert (plan.bound, plan.workers_for_rate()) == (bound, needed)


@pytest.mark.parametrize(
    ("memory_mb", "latency"),
    [
        (1769, 0.1),
        (3000, 0.1),  # Python computes on one vCPU
        (512, 0.095 + 0.005 * 1769 / 512),
        (256, 0.095 + 0.005 * 1769 / 256),  # 0.13
    ],
)
def test_less_memory_than_a_whole_vcpu_has_makes_a_message_compute_for_longer(
    memory_mb: int, latency: float
) -> None:
    lane = Stages(context(memory_mb=memory_mb)).lane("dev", "mail", "bulk")
    plan = SendingPlan(lane.senders, USUAL, 1)
    assert plan.latency == pytest.approx(latency)
    assert plan.working == pytest.approx(latency)


@pytest.mark.parametrize(("at_once", "memory_mb"), [(1, 256), (2, 270), (5, 320), (10, 512), (5, 1769)])
def test_messages_at_a_time_share_a_vcpu_as_queueing_theory_says(at_once: int, memory_mb: int) -> None:
    lane = Stages(context(memory_mb=memory_mb, submits_at_once=at_once)).lane("dev", "mail", "bulk")
    computing, waits = 0.005 / (memory_mb / 1769), 0.095
    # The processor is idle in 1 of so many states, weighted by how likely each is (product form).
    states = sum(math.perm(at_once, n) * (computing / waits) ** n for n in range(at_once + 1))
    a_second = (1 - 1 / states) / computing
    assert SendingPlan(lane.senders, USUAL, 1).latency == pytest.approx(at_once / a_second)


def test_five_at_a_time_send_three_times_as_many_a_worker_as_one() -> None:
    def speed(**mail: int) -> float:
        lane = Stages(context(messages_per_second=100_000, **mail)).lane("dev", "mail", "bulk")
        return SendingPlan(lane.senders, USUAL, 1).bounds["workers"] / lane.workers

    assert speed(submits_at_once=1, memory_mb=256) == pytest.approx(7.17, abs=0.005)
    assert speed(submits_at_once=5, memory_mb=320) == pytest.approx(23.55, abs=0.005)
    assert speed(submits_at_once=10, memory_mb=512) == pytest.approx(35.98, abs=0.005)


def test_from_a_busy_lane_on_several_at_a_time_send_a_third_more_for_less() -> None:
    rate = 4 * BUSY  # of 4 workers
    one, more = (
        Stages(context(messages_per_second=2 * rate, submits_at_once=at_once, memory_mb=memory_mb)).lane(
            "dev", "mail", "bulk"
        )
        for at_once, memory_mb in ((1, 256), (AT_ONCE, 318))
    )
    slow, fast = (SendingPlan(lane.senders, USUAL, 1) for lane in (one, more))
    assert fast.speed > 4 / 3 * slow.speed
    paid = [(plan.working + plan.waiting) * lane.memory_mb for plan, lane in ((slow, one), (fast, more))]
    assert paid[1] < 0.9 * paid[0]


def test_a_message_computes_for_no_longer_than_it_takes() -> None:
    assert SendingPlan(Senders(4, 10, 4), Assumed(0.001, 0.1, 0.005), 1).latency == pytest.approx(0.001)


@pytest.mark.parametrize(("rate", "workers"), [(7.0, 1), (9.0, 1), (10.0, 2), (99.0, 11), (None, None)])
def test_the_fewest_workers_for_a_rate(rate: float | None, workers: int | None) -> None:
    plan = SendingPlan(Senders(4, 10, rate), USUAL, 1)
    assert plan.workers_for_rate() == workers
    if rate and workers:
        assert SendingPlan(Senders(workers, 10, rate), USUAL, 1).bound == "rate"
        assert workers == 1 or SendingPlan(Senders(workers - 1, 10, rate), USUAL, 1).bound == "workers"


def test_one_message_takes_as_long_as_it_takes() -> None:
    # A gap of 1 s follows it, which nobody waits for.
    assert answered(1, Assumed(0.3, 0.1, 0)).seconds == pytest.approx(0.3)


@pytest.mark.parametrize("stage", ["dev", "prod", "local"])
def test_every_lane_has_the_pace_that_is_deployed(stage: str) -> None:
    settings = load(STAGES, stage)
    rows = list(settings.lane_rows())
    assert rows
    for row in rows:
        lane = Stages.of().lane(stage, row.event_type, row.lane)
        assert lane.senders.pace == pytest.approx(row.pace)
        assert (lane.workers, lane.batch) == (row.polling.maximum_concurrency, row.polling.batch_size)
        assert lane.senders.at_once == row.channel.submits_at_once
    if settings.fax:
        assert Stages.of().lane(stage, "fax", "normal").senders.pace == pytest.approx(settings.fax.pace)


@pytest.mark.parametrize(
    ("channel", "lane", "sentence"),
    [
        ("pigeon", "normal", "channel: 'pigeon' is not in dev; use one of mail, webhook."),
        ("fax", "normal", "channel: 'fax' is not in dev; use one of mail, webhook."),
        ("mail", "slow", "lane: mail has no 'slow' in dev; use normal or bulk."),
    ],
)
def test_what_a_stage_does_not_have_is_refused_with_what_it_has(
    channel: str, lane: str, sentence: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        Stages(CONTEXT).lane("dev", channel, lane)
    assert str(caught.value) == sentence


def _keys(lane: ConfiguredLane) -> list[str]:
    keys = lane.keys
    return [each for each in (keys.workers, keys.batch, keys.rate, keys.kept, keys.at_once) if each]


@pytest.mark.parametrize(
    ("channel", "lane"), [("mail", "bulk"), ("sms", "normal"), ("fax", "normal"), ("webhook", "normal")]
)
def test_every_key_that_is_named_is_a_setting(channel: str, lane: str) -> None:
    stages = Stages.of()
    for key in _keys(stages.lane("prod", channel, lane)):
        with pytest.raises(SettingsError, match=rf"^mailroom\.prod\.{key}: -1 is under "):
            stages.changed("prod", key, -1).lane("prod", channel, lane)
