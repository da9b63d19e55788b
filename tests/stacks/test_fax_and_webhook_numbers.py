"""The numbers of faxes and webhooks keep the design's promises, whatever the settings."""

import copy
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from mailroom.clock import backoff
from mailroom_stacks.settings.fax import fax_rules, mover_rules
from mailroom_stacks.settings.load import load
from mailroom_stacks.settings.queues import CRASH_ALLOWANCE, DAY, MARGIN_DAYS, RESEND_DELAYS, Waits
from mailroom_stacks.settings.webhook import webhook_rules
from tests.support.stacks.refusals import STAGES, settings_or_discard
from tests.support.stacks.waiting_times import shortest_total

faxes = st.fixed_dictionaries(
    {
        "provider": st.just("signalwire"),
        "space": st.just("example"),
        "senders": st.just(["+12025550123"]),
        "concurrent_calls": st.integers(2, 20),
        "calls_per_second": st.floats(1, 50),
        "retry_delay_seconds": st.integers(1, 43_200),
    }
)
webhooks = st.fixed_dictionaries(
    {"delays_seconds": st.lists(st.integers(0, 39_600), min_size=1, max_size=40)}
)
stages = st.fixed_dictionaries({"fax": faxes, "webhook": webhooks})
many = settings(
    max_examples=50,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)


@given(stages, st.integers(301, 20_000))
@many
def test_a_submitted_fax_has_enough_receives_left_for_the_longest_transmission(
    templates_of_stage: dict[str, Any], longest_fax: int
) -> None:
    chosen = settings_or_discard({**copy.deepcopy(STAGES["dev"]), **templates_of_stage})
    fax = chosen.fax
    assert fax is not None
    times = structs.replace(chosen.times, longest_fax=longest_fax)
    rules, waits = fax_rules(times), Waits.of(times)
    # An outage of DynamoDB may make any of them a receive that only backs off.
    left = range(rules.last_submit_receive + 1, rules.max_receives - CRASH_ALLOWANCE + 1)
    lasting = [min(times.fax_watched, backoff(each, waits.base, waits.cap, lambda: 0)) for each in left]

    assert sum(lasting) >= longest_fax
    assert sum(lasting[:-1]) < longest_fax
    assert rules.last_submit_receive >= 1
    assert shortest_total(waits, rules.last_submit_receive) >= times.provider_throttling
    assert rules.max_receives <= 1000
    assert rules.lease == times.fax_timeout + times.lease_margin
    assert rules.visibility == rules.lease + times.fax_visibility_margin
    longest = sum(max(waits.after(each), rules.visibility) for each in range(1, rules.max_receives + 1))
    assert longest + MARGIN_DAYS * DAY <= chosen.retention.queue_days * DAY
    assert fax.concurrent_calls / fax.pace <= fax.calls_per_second * (1 + 1e-6)
    assert fax.pace < times.fax_watched


@given(stages)
@many
def test_a_fax_leaves_the_retry_queue_within_its_retention_whatever_the_retry_delay(
    templates_of_stage: dict[str, Any],
) -> None:
    chosen = settings_or_discard({**copy.deepcopy(STAGES["dev"]), **templates_of_stage})
    assert chosen.fax is not None
    rules = mover_rules(chosen.fax, chosen.times)
    # A record is received once when its delay ends, and once more if clocks differ.
    moving = rules.max_receives - 2
    assert moving * rules.visibility >= chosen.times.throttling
    longest = rules.max_receives * rules.visibility + chosen.fax.retry_delay_seconds
    assert longest <= rules.longest_stay
    assert rules.longest_stay + MARGIN_DAYS * DAY <= chosen.retention.queue_days * DAY


@given(stages)
@many
def test_a_webhook_gets_all_its_tries_within_its_queues_retention(templates_of_stage: dict[str, Any]) -> None:
    chosen = settings_or_discard({**copy.deepcopy(STAGES["dev"]), **templates_of_stage})
    webhook, times, rules = chosen.webhook, chosen.times, webhook_rules(chosen.webhook, chosen.times)
    delays = webhook.delays_seconds
    assert rules.max_receives == len(delays) + 1
    waits = sum(max(delay, times.retry_after_cap) for delay in delays)
    longest = waits + rules.max_receives * rules.visibility
    assert longest + MARGIN_DAYS * DAY <= chosen.retention.queue_days * DAY
    # A visibility time-out ends at most 12 hours after the receive, and a delay begins in the function.
    assert max(*delays, times.retry_after_cap) + times.webhook_timeout <= 43_200
    assert times.webhook_request + times.record < times.webhook_timeout
    assert rules.lease < rules.visibility


def test_the_derived_numbers_of_fax_and_webhook_in_stage_dev_equal_those_of_the_formulas() -> None:
    dev = load(STAGES, "dev")
    assert dev.fax is not None
    fax = fax_rules(dev.times)
    # 40 receives cover four hours of throttling; 16 of 450 s outlast the longest fax; 5 may crash.
    assert (fax.max_receives, fax.last_submit_receive) == (40 + 16 + 5, 40)
    assert fax.longest_stay == 61 * 1020 + sum(RESEND_DELAYS)
    retry = mover_rules(dev.fax, dev.times)
    assert (retry.visibility, retry.max_receives) == (360, 1 + 3_600 // 180 + 5 + 2)
    webhook = webhook_rules(dev.webhook, dev.times)
    assert webhook.longest_stay == 10 * 3_600 + 140_400 + 20 * 360
