"""The numbers derived from settings keep the design's promises, whatever the settings."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mailroom_stacks.settings.channels import MOST_TOGETHER
from mailroom_stacks.settings.load import load
from mailroom_stacks.settings.queues import CRASH_ALLOWANCE, DAY, MARGIN_DAYS, Waits
from tests.support.stacks.refusals import STAGES, settings_or_discard
from tests.support.stacks.waiting_times import shortest_total

lanes = st.fixed_dictionaries(
    {
        "share": st.floats(0.05, 0.5),
        "maximum_concurrency": st.integers(2, 20),
    }
)
channels = st.fixed_dictionaries(
    {
        "handler": st.just("send_mail"),
        "lanes": st.fixed_dictionaries({"normal": lanes, "bulk": lanes}),
        "timeout_seconds": st.none() | st.integers(30, 900),
        "messages_per_second": st.floats(1, 500),
        "submit_seconds": st.integers(1, 30),
        "submits_at_once": st.integers(1, 10),
        "longest_throttling_seconds": st.integers(0, 90_000),
    }
)
stages = st.fixed_dictionaries(
    {
        "channels": st.fixed_dictionaries({"mail": channels}),
        "mail": st.just({"senders": ["a@example.com"]}),
    }
)


@given(stages)
@settings(max_examples=100, suppress_health_check=[HealthCheck.filter_too_much])
def test_leases_visibility_timeouts_receives_and_batches_follow_their_rules_for_valid_settings(
    templates_of_stage: dict[str, Any],
) -> None:
    chosen = settings_or_discard(templates_of_stage)
    for row in chosen.lane_rows():
        channel, rules = row.channel, row.rules
        waits = Waits(chosen.times.backoff, chosen.times.backoff_cap)
        neighbours = MOST_TOGETHER - 1
        throttled = rules.max_receives - CRASH_ALLOWANCE - neighbours
        crashes = (CRASH_ALLOWANCE + neighbours) * rules.visibility
        longest = sum(waits.after(receive) for receive in range(1, throttled)) + crashes
        margin = MARGIN_DAYS * DAY

        assert rules.lease == row.timeout_seconds + chosen.times.lease_margin
        assert rules.lease < rules.visibility
        assert rules.visibility >= 6 * row.timeout_seconds
        assert shortest_total(waits, throttled) >= channel.longest_throttling_seconds
        assert shortest_total(waits, throttled - 1) < max(channel.longest_throttling_seconds, 1)
        assert rules.max_receives <= 1000
        assert longest + margin <= chosen.retention.queue_days * DAY <= 14 * DAY
        # The slowest message goes back to the queue if the others of its batch come first and leave it too
        # little time. It then is the last of its next batches, so it needs its time also as the last.
        preparing = channel.submits_at_once * chosen.times.preparation / min(1, row.memory_mb / 1769)
        last = preparing + channel.submit_seconds + chosen.times.record
        assert 1 <= row.batch_size <= MOST_TOGETHER
        assert row.batch_size * row.pace + last < row.timeout_seconds <= 900
        fits_more = (row.batch_size + 1) * row.pace + last < row.timeout_seconds - 1e-6
        assert row.batch_size == MOST_TOGETHER or not fits_more
        if channel.timeout_seconds is None:
            assert row.timeout_seconds == max(25 if row.lane == "normal" else 60, int(last + row.pace) + 1)
        else:
            assert row.timeout_seconds == channel.timeout_seconds


@given(stages)
@settings(max_examples=100, suppress_health_check=[HealthCheck.filter_too_much])
def test_all_workers_of_all_lanes_together_keep_within_the_channels_rate(
    templates_of_stage: dict[str, Any],
) -> None:
    chosen = settings_or_discard(templates_of_stage)
    rows = list(chosen.lane_rows())
    fastest = sum(row.polling.maximum_concurrency / row.pace for row in rows)
    assert fastest <= rows[0].channel.messages_per_second * (1 + 1e-6)


def test_the_derived_numbers_of_mail_in_stage_dev_equal_those_of_the_formulas() -> None:
    dev = load(STAGES, "dev")
    mail, bulk, _ = dev.lane_rows()
    # With 256 MB, the slowest mail takes 6.9 s of 15 % of a vCPU, and 15 s for its submit and the recording.
    # After its submit, a worker waits for 4 s.
    assert mail.timeout_seconds == 26 == int(1 / (256 / 1769) + 10 + 5 + 4) + 1
    assert (mail.rules.lease, mail.rules.visibility) == (26 + 60, 6 * 26 + 0)
    assert (bulk.rules.lease, bulk.rules.visibility) == (60 + 60, 6 * 60 + 0)
    assert (mail.batch_size, bulk.batch_size) == (1, 9)
    # Half of 5 + 10 + 20 … + 640 covers 637.5 s, 31 half waits of 900 s the rest of 4 hours.
    # Nine neighbours in a batch are given back once each.
    assert mail.rules.max_receives == 1 + 8 + 31 + 5 + 9
    assert (mail.pace, bulk.pace) == (2 / (1 * 0.5), 2 / (1 * 0.5))
