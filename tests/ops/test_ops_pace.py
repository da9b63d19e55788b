"""How fast a lane sends, and what bounds it."""

from dataclasses import replace
from typing import Any

import pytest

from mailroom.channels.channel import Estimate
from mailroom_ops.costs.configured_lanes import ConfiguredLane, lane_of
from mailroom_ops.costs.plan import plan_output
from mailroom_stacks.settings.load import load
from mailroom_stacks.settings.sentences import SettingsError
from tests.support.ops.plan import CHANNEL, NOW, UNLIMITED, planned
from tests.support.stacks.refusals import STAGES, with_settings

SETTINGS = load(STAGES, "prod")
LANE = lane_of(SETTINGS, "mail", "bulk")


def pace(latency: float = 0.1, computing: float = 0, **lane: Any) -> ConfiguredLane:
    return replace(LANE, estimate=Estimate(latency=latency, computing=computing), **lane)


def test_the_example_of_the_article_takes_67_minutes() -> None:
    # 100,000 mails, 5 at once, batches of 3 that take 0.5 s, and 0.1 s in between.
    article = pace(0.5 / 3, workers=5, batch=3, rate=None)
    assert round(100_000 / article.speed / 60) == 67


def test_the_workers_are_the_bound_of_a_lane_with_a_higher_rate() -> None:
    plan = planned(changes={**UNLIMITED, f"{CHANNEL}.messages_per_second": 200})
    assert (plan.bound, plan.setting) == (
        "workers",
        "mailroom.prod.channels.mail.lanes.bulk.maximum_concurrency",
    )


@pytest.mark.parametrize(
    ("at_once", "memory_mb", "latency"),
    # What a message computes, 5 ms of a whole vCPU, takes 7 times as long with 256 MB, and threads share it.
    [(1, 1769, 0.1), (1, 256, 0.12955), (2, 256, 0.12955), (10, 256, 0.3455), (10, 1769, 0.1)],
)
def test_a_message_takes_longer_with_less_memory_and_with_other_messages_beside_it(
    at_once: int, memory_mb: int, latency: float
) -> None:
    found = pace(computing=0.005, at_once=at_once, memory_mb=memory_mb)
    assert found.seconds == pytest.approx(latency, rel=1e-3)


def test_threads_divide_the_time_of_a_batch() -> None:
    assert pace(at_once=5).working == pytest.approx(0.1 * 2 / 10)


@pytest.mark.parametrize(("rate", "workers"), [(9.0, 2), (20.0, 3), (99.0, 11), (None, None)])
def test_a_rate_needs_a_minimum_of_workers(rate: float | None, workers: int | None) -> None:
    assert pace(rate=rate).workers_for_rate == workers


def test_a_single_message_takes_its_own_duration() -> None:
    faxes = lane_of(SETTINGS, "fax")
    assert faxes.speed > 1 / 60
    assert plan_output(SETTINGS, faxes, 1, NOW).seconds == 60


def test_a_number_of_messages_above_the_queues_retention_is_warned_of_with_the_maximum() -> None:
    (row,) = (each for each in SETTINGS.lane_rows() if each.lane == "bulk")
    most = int((4 * 86_400 - row.rules.longest_stay) * 7)
    assert f"Put at most {most:,}." in planned(10_000_000).warning
    assert planned(most).warning == ""
    assert planned(most + 1).warning


@pytest.mark.parametrize("stage", ["dev", "prod", "local"])
def test_every_lane_has_the_pace_that_is_deployed(stage: str) -> None:
    settings = load(STAGES, stage)
    rows = list(settings.lane_rows())
    assert rows
    for row in rows:
        lane = lane_of(settings, row.event_type, row.lane)
        assert lane.pace == pytest.approx(row.pace)
        assert (lane.workers, lane.batch) == (row.polling.maximum_concurrency, row.batch_size)
        assert lane.at_once == row.channel.submits_at_once
    if settings.fax:
        assert lane_of(settings, "fax").pace == pytest.approx(settings.fax.pace)


@pytest.mark.parametrize(
    ("channel", "lane"), [("mail", "bulk"), ("sms", "normal"), ("fax", "normal"), ("webhook", "normal")]
)
def test_each_setting_that_bounds_a_lane_exists(channel: str, lane: str) -> None:
    lane_ = lane_of(SETTINGS, channel, lane)
    for path in filter(None, (lane_.workers_setting, lane_.rate_setting)):
        with pytest.raises(SettingsError, match=rf"^mailroom\.prod\.{path}: -1 should be "):
            load(with_settings({path: -1}, "prod"), "prod")


WARM_UP = [["2026-11-21", 500], ["2026-11-22", 1_000], ["2026-11-23", 5_000]]


def test_bulk_above_the_daily_limit_is_sent_on_the_next_days_and_codes_keep_their_reserve() -> None:
    plan = planned(2_000, {f"{CHANNEL}.per_day": WARM_UP})
    assert [(each.begins[:10], each.messages, each.left_for_codes) for each in plan.days] == [
        ("2026-11-21", 450, 50),
        ("2026-11-22", 900, 100),
        ("2026-11-23", 650, 500),
    ]
    assert plan.seconds == pytest.approx(34 * 3600 - 34 + 650 / 7, abs=1)
    assert (plan.bound, plan.setting) == ("day", "mailroom.prod.channels.mail.per_day")


FALLBACK = {"mail.fallback": "resend", f"{CHANNEL}.fallback": {"messages_per_second": 2, "per_day": 1_000}}


def test_a_second_provider_has_its_own_rate_day_and_price() -> None:
    settings = load(with_settings(FALLBACK, "prod"), "prod")
    first, second = (lane_of(settings, "mail", name) for name in ("bulk", "bulk-fallback"))
    assert [(each.provider, each.estimate.provider, each.rate) for each in (first, second)] == [
        ("ses", "SES", 7.0),
        ("resend", "", 1.0),
    ]
    plan = plan_output(settings, second, 1_800, NOW)
    assert (plan.provider, plan.lane, plan.bound) == ("resend", "bulk-fallback", "day")
    assert plan.setting == "mailroom.prod.channels.mail.fallback.per_day"
    assert [each.messages for each in plan.days] == [900, 900]
    plan = plan_output(settings, second, 100, NOW)
    assert plan.setting == "mailroom.prod.channels.mail.fallback.messages_per_second"


def test_messages_within_the_daily_limit_take_as_long_as_without_a_limit() -> None:
    within, unlimited = planned(40_000, {}), planned(40_000)
    assert (within.seconds, within.bound) == (unlimited.seconds, "rate")
    assert planned(60_000, {}, lane="normal").days == []
