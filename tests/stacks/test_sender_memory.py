"""A sender's memory holds the renderings of its threads."""

import pytest

from lab.bench.template_shapes import cost
from mailroom_stacks.settings.channels import ITEM_MB


@pytest.mark.process
def test_a_rendering_needs_no_more_memory_than_synth_reserves_for_a_message() -> None:
    assert ITEM_MB / 2 < cost("html as large as the work allows").megabytes <= ITEM_MB
