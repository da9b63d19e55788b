"""Settings and numbers on pages are those of synth."""

import copy
import json
from dataclasses import replace
from typing import Any

import pytest

from mailroom.content.own_process import MAX_CPU_SECONDS
from mailroom_ops.costs.configured_lanes import lane_of
from mailroom_ops.costs.message_cost import message_parts
from mailroom_stacks.settings.channels import MOST_TOGETHER
from mailroom_stacks.settings.load import load
from mailroom_stacks.settings.queues import RESEND_DELAYS
from mailroom_stacks.settings.times import AWS, WHOLE_VCPU_MB
from tests.support.docs_pages import Page
from tests.support.stacks.refusals import STAGES


@pytest.mark.parametrize("block", [each.text for each in Page("docs/reference/limits.md").blocks("json")])
def test_each_block_of_settings_on_the_page_about_limits_is_valid(block: str) -> None:
    stages: dict[str, Any] = copy.deepcopy(STAGES)
    changes = json.loads(block)
    stages["prod"]["channels"]["mail"] |= changes.pop("channels")["mail"]
    for name, section in changes.items():
        stages["prod"][name] = stages["prod"].get(name, {}) | section
    assert load(stages, "prod").channels["mail"].messages_per_second


def test_the_page_keep_codes_fast_states_the_configured_delay_of_a_code_after_a_crash() -> None:
    row = next(row for row in load(STAGES, "prod").lane_rows() if row.queue == "mail")
    text = Page("docs/how-to/keep-codes-fast.md").text
    assert f"| {row.rules.visibility} s, if the code was not sent: six times the time-out of " in text
    assert f"the time-out of {row.timeout_seconds} s, as [AWS recommends]" in text
    assert f"[{RESEND_DELAYS[1] // 60} minutes more]" in text
    slowest = MAX_CPU_SECONDS * WHOLE_VCPU_MB / row.memory_mb
    joined = " ".join(text.split())
    assert f"{MAX_CPU_SECONDS} s of CPU time, which is {slowest:.1f} s with {row.memory_mb} MB." in joined


def test_two_pages_state_the_computed_price_of_small_batches_and_the_rates_at_which_they_occur() -> None:
    settings = load(STAGES, "prod")
    text = Page("docs/reference/limits.md").text
    row = next(row for row in settings.lane_rows() if row.queue == "mail")
    rest = AWS.urgent_timeout - row.channel.submit_seconds - AWS.record
    gap = (rest - AWS.preparation * WHOLE_VCPU_MB / row.memory_mb) / MOST_TOGETHER
    assert f"less than {row.polling.maximum_concurrency / gap:.1f} messages a second" in text
    longest = row.polling.maximum_concurrency / (gap * MOST_TOGETHER)
    codes = Page("docs/how-to/keep-codes-fast.md").text
    assert f"a lane of less than {longest:.2f} messages a second" in " ".join(codes.split())
    lane = lane_of(settings, "mail")
    dearer = [sum(message_parts(settings, replace(lane, batch=batch)).values()) for batch in (1, 10)]
    assert f"at most {(dearer[0] - dearer[1]) * 1e6:.2f} more for a million" in text
    assert f"arrive one by one ({(dearer[0] - dearer[1]) * 1e6:.2f} more for a million)" in " ".join(
        text.split()
    )
