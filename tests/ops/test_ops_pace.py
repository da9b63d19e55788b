"""How fast a lane sends, and what bounds it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from mailroom.channels.channel import Estimate
from mailroom_ops.costs.configured_lanes import ConfiguredLane, lane_of
from mailroom_ops.costs.cost import sending_time
from mailroom_ops.costs.days import days, portions
from mailroom_stacks.settings.load import load
from mailroom_stacks.settings.sentences import SettingsError
from tests.support.stacks.refusals import STAGES, with_settings

SETTINGS = load(STAGES, "prod")
LANE = lane_of(SETTINGS, "mail-bulk")
NOW = 1_795_269_634.0  # 2026-11-21T14:00:34Z
CHANNEL = "channels.mail"
UNLIMITED = {f"{CHANNEL}.per_day": None, f"{CHANNEL}.lanes.normal.reserve": 0}
RATE = f"{CHANNEL}.messages_per_second"


def bulk(messages: int, changes: Mapping[str, Any], queue: str = "mail-bulk") -> tuple[float, str]:
    """Return the time that mails of prod take and its bound, with `changes` of settings by their paths."""
    return sending_time(lane_of(load(with_settings(changes, "prod"), "prod"), queue), messages, NOW)


def pace(latency: float = 0.1, computing: float = 0, **lane: Any) -> ConfiguredLane:
    return replace(LANE, estimate=Estimate(latency=latency, computing=computing), **lane)


def test_the_estimate_for_a_run_of_100000_mails_is_the_67_minutes_of_the_documentation() -> None:
    # 100,000 mails, 5 at once, batches of 3 that take 0.5 s, and 0.1 s in between.
    article = pace(0.5 / 3, workers=5, batch=3, rate=None)
    assert round(100_000 / article.speed / 60) == 67


def test_the_number_of_workers_bounds_the_estimated_pace_of_a_lane_whose_rate_is_higher() -> None:
    changes = {**UNLIMITED, RATE: 200}
    assert bulk(100_000, changes)[1] == f"{CHANNEL}.lanes.bulk.maximum_concurrency"


@pytest.mark.parametrize(
    ("at_once", "memory_mb", "latency"),
    # The computation of a message, 5 ms of a whole vCPU, takes 7 times as long with 256 MB, and threads share
    # it.
    [(1, 1769, 0.1), (1, 256, 0.12955), (2, 256, 0.12955), (10, 256, 0.3455), (10, 1769, 0.1)],
)
def test_the_estimated_time_of_a_message_grows_with_less_memory_and_with_more_messages_at_once(
    at_once: int, memory_mb: int, latency: float
) -> None:
    found = pace(computing=0.005, at_once=at_once, memory_mb=memory_mb)
    assert found.seconds == pytest.approx(latency, rel=1e-3)


def test_the_estimated_time_of_a_batch_is_divided_by_the_number_of_its_threads() -> None:
    assert pace(at_once=5).working == pytest.approx(0.1 * 2 / 10)


def test_the_estimate_for_a_single_message_is_its_whole_duration_although_its_lane_is_faster() -> None:
    faxes = lane_of(SETTINGS, "fax")
    assert faxes.speed > 1 / 60
    assert sending_time(faxes, 1, NOW) == (faxes.seconds, "fax.concurrent_calls")


def test_a_message_may_wait_in_its_queue_for_the_queues_retention_minus_the_time_of_its_retries() -> None:
    (row,) = (each for each in SETTINGS.lane_rows() if each.lane == "bulk")
    assert LANE.longest_wait == 4 * 86_400 - row.rules.longest_stay


@pytest.mark.parametrize("stage", ["dev", "prod", "local"])
def test_the_estimate_for_each_lane_uses_the_pace_and_limits_that_are_deployed(stage: str) -> None:
    settings = load(STAGES, stage)
    rows = list(settings.lane_rows())
    assert rows
    for row in rows:
        lane = lane_of(settings, row.queue)
        assert lane.pace == pytest.approx(row.pace)
        assert (lane.workers, lane.batch) == (row.polling.maximum_concurrency, row.batch_size)
        assert lane.at_once == row.channel.submits_at_once
    if settings.fax:
        assert lane_of(settings, "fax").pace == pytest.approx(settings.fax.pace)


@pytest.mark.parametrize("queue", ["mail-bulk", "sms", "fax", "webhook"])
def test_each_setting_that_the_estimate_names_as_the_bound_of_a_lane_exists(queue: str) -> None:
    for path in lane_of(SETTINGS, queue).speeds:
        with pytest.raises(SettingsError, match=rf"^mailroom\.prod\.{path}: -1 should be "):
            load(with_settings({path: -1}, "prod"), "prod")


WARM_UP = (("2026-11-21", 500), ("2026-11-22", 1_000), ("2026-11-23", 5_000))


def test_an_estimated_bulk_sending_fills_each_days_limit_minus_the_reserve_for_codes() -> None:
    shares = days(portions(2_000, WARM_UP, 0.1, NOW), WARM_UP, 0.1)
    assert [(each.begins[:10], each.messages, each.left_for_codes) for each in shares] == [
        ("2026-11-21", 450, 50),
        ("2026-11-22", 900, 100),
        ("2026-11-23", 650, 500),
    ]


def test_the_estimate_puts_bulk_messages_above_the_daily_limit_on_the_next_days() -> None:
    # 450 at once and 900 on the next day; the rest from midnight of the third on.
    seconds, bound = bulk(2_000, {f"{CHANNEL}.per_day": WARM_UP})
    assert seconds == pytest.approx(34 * 3600 - 34 + 650 / 7, abs=1)
    assert bound == f"{CHANNEL}.per_day"


FALLBACK = {"mail.fallback": "resend", f"{CHANNEL}.fallback": {"messages_per_second": 2, "per_day": 1_000}}


def test_a_second_provider_has_its_own_rate_daily_limit_and_price() -> None:
    settings = load(with_settings(FALLBACK, "prod"), "prod")
    first, second = (lane_of(settings, queue) for queue in ("mail-bulk", "mail-bulk-fallback"))
    assert [(each.provider, each.descriptor.price, each.rate) for each in (first, second)] == [
        ("ses", 160e-6, 7.0),
        ("resend", 0, 1.0),
    ]
    # The hour of the first 900 counts until 15:15 of the next day.
    seconds = 25.25 * 3600 - 34 + 900
    assert sending_time(second, 1_800, NOW) == (seconds, f"{CHANNEL}.fallback.per_day")
    assert sending_time(second, 100, NOW) == (100, f"{CHANNEL}.fallback.messages_per_second")


def test_the_estimate_for_messages_within_the_daily_limit_is_the_same_as_without_a_limit() -> None:
    assert bulk(40_000, {}) == bulk(40_000, UNLIMITED) == (40_000 / 7, RATE)
    assert bulk(60_000, {}, "mail") == (60_000 / 7, RATE)
