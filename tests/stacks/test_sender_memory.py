"""A sender's memory holds the renderings of its threads."""

from mailroom.content.own_process import MAX_MEGABYTES
from mailroom_stacks.settings.channels import ITEM_MB


def test_a_rendering_needs_no_more_memory_than_synth_reserves_for_a_message() -> None:
    assert MAX_MEGABYTES < ITEM_MB
