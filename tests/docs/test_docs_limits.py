"""The settings that docs/reference/limits.md shows pass the rules of synth."""

import copy
import json
from typing import Any

import pytest

from mailroom_stacks.settings.load import load
from tests.support.docs_pages import Page
from tests.support.stacks.refusals import STAGES


@pytest.mark.parametrize("block", [each.text for each in Page("docs/reference/limits.md").blocks("json")])
def test_each_section_of_settings_passes_synth(block: str) -> None:
    stages: dict[str, Any] = copy.deepcopy(STAGES)
    changes = json.loads(block)
    stages["prod"]["channels"]["mail"] |= changes.pop("channels")["mail"]
    for name, section in changes.items():
        stages["prod"][name] = stages["prod"].get(name, {}) | section
    assert load(stages, "prod").channels["mail"].messages_per_second
