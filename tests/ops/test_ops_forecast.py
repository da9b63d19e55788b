"""How long many messages take, what bounds it, and what they cost, by counts and a price table."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mailroom_ops.estimates.forecast import WAITING, WORKING, Sending
from mailroom_ops.estimates.lanes import Assumed, ConfiguredLane, Stages
from mailroom_ops.estimates.quotas import TABLE_WRITES
from mailroom_stacks.settings.load import load
from mailroom_stacks.settings.sentences import SettingsError
from tests.support.ops.plan import CONTEXT, USUAL, context, planned
from tests.support.stacks.refusals import STAGES

ONLY_WAITING = Assumed(latency=0.1, between=0.1, computing=0)
"""Messages that share no processor."""
LANE = Stages(CONTEXT).lane("dev", "mail", "bulk")


def sending(assumed: Assumed = ONLY_WAITING, **lane: Any) -> Sending:
    return Sending(replace(LANE, **lane), assumed)


def test_the_articles_example_takes_67_minutes() -> None:
    # 100,000 mails, 5 at once, batches of 3 that take 0.5 s, and 0.1 s in between.
    article = sending(Assumed(0.5 / 3, 0.1, 0), workers=5, batch=3, allowed=None)
    assert round(100_000 / (5 * article.a_worker) / 60) == 67


def test_the_least_of_all_bounds_is_the_rate_and_the_next_is_named() -> None:
    found = planned()
    assert (found.bound, found.next_bound) == ("rate", "workers")
    assert (found.messages_per_second, found.seconds) == (7.0, 14_285.7)
    assert found.bounds["workers"] > 7 > 0
    assert found.limits["rate"] == "mailroom.dev.channels.mail.messages_per_second"


@pytest.mark.parametrize(
    ("changes", "bound"),
    [
        ({"channels.mail.messages_per_second": 2_000}, "workers"),
        (
            {
                "channels.mail.messages_per_second": 8_000,
                "channels.mail.lanes.bulk.maximum_concurrency": 900,
                "monitoring.concurrency_quota": 10_000,
            },
            "ledger",
        ),
        (
            {
                "channels.mail.messages_per_second": 8_000,
                "channels.mail.lanes.bulk.maximum_concurrency": 900,
                "monitoring.concurrency_quota": 100,
            },
            "functions",
        ),
    ],
)
def test_a_setting_or_a_quota_that_is_small_is_the_bound(changes: dict[str, Any], bound: str) -> None:
    assert planned(changes=changes).bound == bound


def test_a_warmed_table_bounds_less() -> None:
    cold, warm = planned(), planned(warm=TABLE_WRITES.value)
    assert warm.bounds["ledger"] == pytest.approx(10 * cold.bounds["ledger"], rel=1e-3)
    assert "Table-level write throughput" in warm.limits["ledger"]


@pytest.mark.parametrize(
    ("at_once", "memory_mb", "latency"),
    # What a message computes, 5 ms of a whole vCPU, takes 7 times as long with 256 MB, and threads share it.
    [(1, 1769, 0.1), (1, 256, 0.12955), (2, 256, 0.12955), (10, 256, 0.3455), (10, 1769, 0.1)],
)
def test_a_message_takes_longer_with_less_memory_and_with_others_beside_it(
    at_once: int, memory_mb: int, latency: float
) -> None:
    found = sending(Assumed(0.1, 0.1, 0.005), at_once=at_once, memory_mb=memory_mb)
    assert found.latency == pytest.approx(latency, rel=1e-3)


def test_a_message_computes_for_no_longer_than_it_takes() -> None:
    assert sending(Assumed(0.001, 0.1, 0.005), memory_mb=1769).latency == pytest.approx(0.001)


def test_threads_divide_the_time_of_a_batch() -> None:
    assert sending(at_once=5).working == pytest.approx(0.1 * 2 / 10)


@pytest.mark.parametrize(("rate", "workers"), [(9.0, 1), (10.0, 2), (99.0, 11), (None, None)])
def test_the_fewest_workers_for_a_rate(rate: float | None, workers: int | None) -> None:
    assert sending(allowed=rate, share=1).workers_for_rate() == workers


def test_one_message_takes_as_long_as_it_takes() -> None:
    assert planned(1, Assumed(0.3, 0.1, 0)).seconds == pytest.approx(0.3)


def test_where_the_rate_bounds_twice_the_rate_is_shown_and_what_that_does() -> None:
    (change,) = planned().changes
    assert (change.setting, change.now, change.then) == (
        "mailroom.dev.channels.mail.messages_per_second",
        14,
        28,
    )
    assert change.seconds == pytest.approx(14_285.7 / 2, rel=1e-3)


def test_where_the_workers_bound_as_many_are_shown_as_the_rate_needs_and_threads_beside() -> None:
    workers, threads = planned(changes={"channels.mail.messages_per_second": 200}).changes
    assert (workers.setting.rpartition(".")[2], workers.now, workers.then) == ("maximum_concurrency", 4, 14)
    assert (threads.setting.rpartition(".")[2], threads.then) == ("submits_at_once", 10)


def test_a_change_that_the_stages_rules_forbid_is_shown_with_their_sentence() -> None:
    changes = {
        "channels.mail.messages_per_second": 4,
        "channels.mail.lanes.bulk.batch_size": 1,
        "channels.mail.timeout_seconds": 30,
    }
    change = planned(assumed=Assumed(20, 0.1, 0), changes=changes).changes[0]
    assert (change.then, change.seconds) == (41, None)
    assert change.forbidden.startswith("mailroom.dev.channels.mail.lanes.bulk.batch_size: 1 x 20.5 s between")


def test_more_than_a_queue_keeps_is_warned_of_with_what_fits() -> None:
    (row,) = (each for each in load(CONTEXT, "dev").lane_rows() if each.lane == "bulk")
    most = int((4 * 86_400 - row.rules.longest_stay) * 7)
    assert f"At most {most:,} fit." in planned(10_000_000).warning
    assert "keeps messages for 4 (mailroom.dev.retention.queue_days)" in planned(10_000_000).warning
    assert planned(most).warning == ""
    assert planned(most + 1).warning


def test_composing_is_as_fast_as_the_smallest_concurrency_of_the_stages_campaigns(tmp_path: Path) -> None:
    for name, number in {"large": 9, "small": 3, "off": 2}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "campaign.toml").write_text(
            f'channel = "mail"\nconcurrency = {number}\n[audience]\nkind = "module"\n'
        )
    fast = context(messages_per_second=2000, bulk={"maximum_concurrency": 50})
    fast["dev"]["campaigns"] = {"enabled": ["large", "small"]}
    found = planned(100_000, stages=Stages(fast, tmp_path))
    assert (found.bound, found.next_bound) == ("compose", "workers")
    assert found.seconds == pytest.approx(100_000 / 150, abs=0.1)
    assert "Composing itself is not in the cost" in found.notes[-1]
    normal = planned(100_000, stages=Stages(fast, tmp_path), lane="normal")
    assert "compose" not in normal.bounds
    assert not any("ompos" in note for note in normal.notes)


def test_a_million_mails_cost_what_their_calls_cost() -> None:
    # A sender of 0.1 s without a pace.
    lane = replace(Stages(STAGES).lane("prod", "mail", "normal"), batch=10, allowed=None, at_once=1)
    found = Sending(lane, Assumed(0.1, 0, 0)).dollars(1_000_000)
    assert found.pop("reads of who may get nothing") == pytest.approx(0.0625)
    assert {name: round(price, 2) for name, price in found.items()} == {
        "mailbox and ledger writes": 1.88,
        "queue requests": 0.12,
        "invocations": 0.02,
        "sender's time": 0.33,
        "SES": 100.0,
    }


def test_waiting_for_the_pace_is_paid_for_beside_the_work_and_fewer_workers_are_named() -> None:
    paced = Sending(LANE, USUAL).dollars(1_000_000)
    assert paced[WAITING] > paced[WORKING]
    free = Sending(replace(LANE, allowed=None), USUAL).dollars(1_000_000)
    assert WAITING not in free
    key = "channels.mail.lanes.bulk.maximum_concurrency"
    assert f"while they work; 2 workers ({key}) are enough." in planned().notes[0]


@pytest.mark.parametrize(("channel", "units"), [("sms", 4), ("fax", 4), ("webhook", 3)])
def test_what_others_take_is_not_guessed(channel: str, units: int) -> None:
    lane = Stages(STAGES).lane("prod", channel, "normal")
    found = Sending(lane, Assumed.of(channel)).dollars(1_000_000)
    assert found["mailbox and ledger writes"] == pytest.approx(units * 0.625)
    assert {*found} <= {
        *("mailbox and ledger writes", "reads of who may get nothing", "queue requests", "invocations"),
        *(WORKING, WAITING),
    }


@pytest.mark.parametrize("stage", ["dev", "prod", "local"])
def test_every_lane_has_the_pace_that_is_deployed(stage: str) -> None:
    settings = load(STAGES, stage)
    rows = list(settings.lane_rows())
    assert rows
    for row in rows:
        lane = Stages.of().lane(stage, row.event_type, row.lane)
        assert lane.pace == pytest.approx(row.pace)
        assert (lane.workers, lane.batch) == (row.polling.maximum_concurrency, row.polling.batch_size)
        assert lane.at_once == row.channel.submits_at_once
    if settings.fax:
        assert Stages.of().lane(stage, "fax", "normal").pace == pytest.approx(settings.fax.pace)


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


WARM_UP = [["2026-11-21", 500], ["2026-11-22", 1_000], ["2026-11-23", 5_000]]


def test_bulk_over_the_day_goes_out_on_the_next_days_and_leaves_codes_their_reserve() -> None:
    limited = {"channels.mail.per_day": WARM_UP, "channels.mail.lanes.normal.reserve": 0.1}
    output = planned(2_000, changes=limited)
    assert [(each.begins[:10], each.messages, each.left_for_codes) for each in output.days] == [
        ("2026-11-21", 450, 50),
        ("2026-11-22", 900, 100),
        ("2026-11-23", 650, 500),
    ]
    assert output.seconds == pytest.approx(34 * 3600 - 34 + 650 / output.messages_per_second, abs=1)
    assert output.changes == []
    # 1,550 messages are held: six write units, a read, a second way through the queue, and release's time.
    assert output.dollars["waits for the day"] == pytest.approx(1_550 * 4.08e-6, abs=1e-3)


def test_what_has_room_in_the_day_takes_as_long_as_without_a_limit() -> None:
    limited = {"channels.mail.per_day": 50_000, "channels.mail.lanes.normal.reserve": 0.1}
    within, usual = planned(40_000, changes=limited), planned(40_000)
    assert (within.seconds, within.changes) == (usual.seconds, usual.changes)
    assert planned(60_000, lane="normal", changes=limited).days == []
