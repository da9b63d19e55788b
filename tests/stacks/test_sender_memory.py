"""A sender's memory and time-out are enough for the slowest renderings."""

from mailroom.content.own_process import MAX_CPU_SECONDS, MAX_MEGABYTES
from mailroom_stacks.settings.channels import ITEM_MB
from mailroom_stacks.settings.times import AWS


def test_a_rendering_needs_no_more_memory_than_synth_reserves_for_a_message() -> None:
    assert MAX_MEGABYTES < ITEM_MB


def test_synth_reserves_time_for_the_slowest_rendering_and_the_start_of_its_process() -> None:
    assert AWS.preparation > MAX_CPU_SECONDS + 0.1
