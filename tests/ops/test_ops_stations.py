"""The stations that a message passes: how fast each is, which is the first bottleneck, and what follows."""

import math
from typing import Any

import pytest

from ops.estimates.lanes import Ramp, Stages
from ops.estimates.quotas import NEW_TABLE_WRITES, POLLERS_A_MINUTE, POLLERS_AT_START, TABLE_WRITES, Quota
from ops.estimates.stations import Forecast, Load, Part, Shared
from stacks.paths import ROOT
from stacks.settings.sentences import SettingsError
from tests.support.ops.plan import CONTEXT, USUAL, answered, context, plan_of, stages_with

RATE = "channels.mail.messages_per_second"
WORKERS = "channels.mail.lanes.bulk.maximum_concurrency"
QUOTA = "monitoring.concurrency_quota"
FAST: dict[str, Any] = {RATE: 10_000, WORKERS: 1000, QUOTA: 10_000, "feedback.maximum_concurrency": 100}
"""Settings with which a lane may send 5,000 mails a second."""
WARM = Load(1_000_000, warm=40_000)


def forecast(
    load: Load = WARM, changes: dict[str, Any] | None = None, lanes: tuple[str, ...] = ("bulk",)
) -> Forecast:
    stages = stages_with(FAST | (changes or {}))
    return Forecast.of(stages, "dev", [stages.lane("dev", "mail", each) for each in lanes], load, USUAL)


def speeds(found: Forecast) -> dict[str, float]:
    return {each.name: each.speed for each in found.stations}


@pytest.mark.parametrize(
    ("bound", "speed", "limit", "change", "warm"),
    [
        ("rate", 500, f"mailroom.dev.{RATE}", {RATE: 1000}, 40_000),
        # Ten mails of 0.13 s and 0.1 s in between are 7.17 a second and worker.
        ("workers", 14.33, f"mailroom.dev.{WORKERS}", {WORKERS: 2}, 40_000),
        # 0.2 s of a sender, 0.002 of dispatch, two events of 0.021 s: 500 / 0.244 s.
        ("functions", 2049, f"mailroom.dev.{QUOTA}", {QUOTA: 500}, 40_000),
        # 2 write units of the senders, 2 x 0.99 of events.
        ("ledger", 1005, NEW_TABLE_WRITES.name, {}, 4_000),
        ("ledger", 25.13, NEW_TABLE_WRITES.name, {}, 100),
    ],
)
def test_a_station_is_the_bottleneck_where_its_setting_or_quota_is_small(
    bound: str, speed: float, limit: str, change: dict[str, Any], warm: int
) -> None:
    found = forecast(Load(1_000_000, warm=warm), change)
    assert found.bound.name == bound
    assert found.bound.speed == pytest.approx(speed, rel=0.001)
    assert found.bound.limit_in("dev") == limit
    assert found.speed <= found.bound.speed


def test_without_the_first_bottleneck_the_next_one_bounds() -> None:
    new = forecast(Load(1_000_000))
    assert (new.bound.name, new.following.name) == ("ledger", "mailbox")
    warm = forecast(WARM)
    assert (warm.bound.name, warm.following.name) == ("rate", "workers")


@pytest.mark.parametrize(("warm", "shards"), [(500, 1), (4000, 4), (4001, 5), (40_000, 40)])
def test_dispatch_has_readers_for_each_shard_of_the_mailbox(warm: int, shards: int) -> None:
    for parallelization in (1, 10):
        found = forecast(Load(1, warm=warm), {"dispatch.parallelization": parallelization})
        assert speeds(found)["dispatch"] == pytest.approx(shards * parallelization / 0.002)


def test_events_take_write_units_only_as_fast_as_feedback_reads_them() -> None:
    slow = forecast(Load(1_000_000), {"feedback.maximum_concurrency": 2})
    # Batches of 100 events take 2.1 s: 2 functions take 95.2 events a second, of which each is 0.99 units.
    assert speeds(slow)["feedback"] == pytest.approx(95.2 / 2, rel=0.001)
    assert speeds(slow)["ledger"] == pytest.approx((4000 - 95.2 * 0.99) / 2, rel=0.001)


def test_what_is_told_later_holds_up_no_message_and_is_said_beside() -> None:
    slow = forecast(Load(100_000), {"feedback.maximum_concurrency": 2})
    assert slow.bound.name == "ledger"
    assert slow.slow_report is not None
    assert slow.slow_report.name == "feedback"
    assert slow.seconds < 100 < 2000 < slow.reported == pytest.approx(100_000 / 47.6, rel=0.001)


def test_callbacks_take_functions_and_write_units() -> None:
    plain, told = (forecast(Load(1000, callbacks=callbacks)) for callbacks in (False, True))
    assert speeds(told).keys() - speeds(plain).keys() == {"outcomes", "webhook"}
    assert speeds(told)["ledger"] < speeds(plain)["ledger"]
    # Two callbacks a mail, batches of one: 10 functions, 0.1 s between two invocations.
    assert speeds(told)["webhook"] < 10 / (0.3 + 0.1) / 2


def test_lanes_together_send_the_sum() -> None:
    both = forecast(WARM, {"channels.mail.lanes.normal.maximum_concurrency": 1000}, ("normal", "bulk"))
    one = forecast(WARM)
    assert both.speed == pytest.approx(2 * one.speed)
    assert [plan.messages for plan in both.plans] == [500_000, 500_000]
    assert both.seconds == pytest.approx(forecast(Load(500_000, warm=40_000)).seconds)


def test_lanes_share_an_odd_number_of_messages_and_lose_none() -> None:
    uneven = forecast(Load(1001), {"channels.mail.lanes.normal.maximum_concurrency": 500}, ("normal", "bulk"))
    assert sum(plan.messages for plan in uneven.plans) == 1001


def test_messages_that_are_put_at_a_rate_take_no_less_than_that() -> None:
    slow, fast = (forecast(Load(100_000, rate, 40_000)) for rate in (100, 100_000))
    assert slow.keeps_up
    assert (slow.seconds, slow.longest_wait) == (1000, 0)
    assert not fast.keeps_up
    assert fast.seconds == pytest.approx(forecast(Load(100_000, warm=40_000)).seconds)
    assert fast.longest_wait == fast.seconds - 1


def test_nothing_is_composed_nor_told_of_where_nobody_does() -> None:
    assert {"compose", "outcomes", "webhook"}.isdisjoint(speeds(forecast()))


@pytest.mark.parametrize("most", [50, 100, 5000])
def test_what_is_shared_is_enough_for_the_speed_and_for_no_more(most: float) -> None:
    shared = Shared(
        "ledger", "", False, total=1000, parts=(Part("a", 2), Part("b", 3, most), Part("c", 1, 60))
    )
    used = 2 * shared.speed + 3 * min(shared.speed, most) + min(shared.speed, 60)
    assert used == pytest.approx(1000)


def test_parts_that_cannot_take_all_are_no_bound() -> None:
    assert math.isinf(
        Shared("functions", "", True, total=100, parts=(Part("a", 1, 40), Part("b", 2, 20))).speed
    )


RAMP = Ramp(start=10, growth=5, highest=60)
"""10 seconds of growing, in which 350 are sent."""


@pytest.mark.parametrize(("messages", "seconds"), [(0, 0), (60, 3.292), (350, 10), (950, 20)])
def test_few_workers_at_the_start_delay_all(messages: float, seconds: float) -> None:
    assert RAMP.time_of(messages) == pytest.approx(seconds, abs=0.001)
    assert RAMP.sent_by(RAMP.time_of(messages)) == pytest.approx(messages)


def test_a_speed_comes_when_enough_workers_have_begun_or_never() -> None:
    assert [RAMP.time_at(speed) for speed in (5, 10, 35, 60, 61)] == [0, 0, 5, 10, math.inf]
    assert RAMP.under(35) == Ramp(10, 5, 35)


def test_lambda_starts_with_few_workers_and_the_plan_says_what_that_costs() -> None:
    wide: dict[str, Any] = {"messages_per_second": 100_000, "bulk": {"maximum_concurrency": 605}}
    planned = plan_of(Stages(context(**wide)), Load(1_000_000, warm=40_000))
    # 300 more a minute: 605 work after two minutes, and on the way as many are missing as 300 for that time.
    assert planned.seconds == pytest.approx(
        1_000_000 / planned.messages_per_second + 120 * 300 / 605, abs=0.1
    )
    assert (
        "Lambda starts with 5 workers and adds 300 a minute: all 605 work after 2 min (120 s)."
        in planned.notes
    )
    assert not any("Lambda starts" in note for note in answered().notes)


def test_the_answer_names_bounds_limits_and_the_deepest_queue() -> None:
    planned = plan_of(Stages(CONTEXT), Load(10_000))
    assert (planned.bound, planned.next_bound) == ("rate", "workers")
    assert planned.bounds.keys() == planned.limits.keys()
    assert planned.limits["rate"] == "mailroom.dev.channels.mail.messages_per_second"
    assert planned.limits["mailbox"] == NEW_TABLE_WRITES.name
    # All are put within 2.5 s, in which few are sent.
    assert 9_950 < planned.deepest_queue < 10_000


def test_a_rate_that_is_kept_needs_no_change_and_has_no_warning() -> None:
    planned = plan_of(Stages(CONTEXT), Load(5_000_000, rate=5))
    assert (planned.keeps_up, planned.changes, planned.warning) == (True, [], "")
    assert planned.seconds == 1_000_000
    assert planned.deepest_queue == 0


def test_a_plan_with_other_settings_is_the_forecast_of_those() -> None:
    found = forecast()
    faster = stages_with(FAST | {RATE: 20_000})
    assert found.again(faster) == forecast(changes={RATE: 20_000})
    with pytest.raises(SettingsError):
        found.again(faster.changed("dev", RATE, -1))


@pytest.mark.parametrize("quota", [NEW_TABLE_WRITES, TABLE_WRITES, POLLERS_AT_START, POLLERS_A_MINUTE])
def test_every_number_of_aws_is_in_the_page_of_limits_with_its_source(quota: Quota) -> None:
    rows = (ROOT / "docs" / "limits.md").read_text().splitlines()
    assert any(quota.page in row and f"{quota.value:,}" in row for row in rows)
