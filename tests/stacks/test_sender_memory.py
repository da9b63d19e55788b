"""A sender's memory and time-out are enough for the slowest renderings."""

from mailroom.content.own_process import MAX_CPU_SECONDS, MAX_MEGABYTES
from mailroom_stacks.settings.channels import ITEM_MB
from mailroom_stacks.settings.times import AWS


def test_the_memory_limit_of_a_rendering_is_below_what_synth_reserves_for_a_message() -> None:
    assert MAX_MEGABYTES < ITEM_MB


def test_synth_reserves_more_time_than_a_rendering_and_the_start_of_its_process_may_take() -> None:
    assert AWS.preparation > MAX_CPU_SECONDS + 0.1
