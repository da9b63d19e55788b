"""The recorded runs of chaos add up."""

import json
from typing import Any

import pytest

from lab.harness.judge import Figures
from tests.support import ROOT


@pytest.mark.parametrize("name", ["chaos.json", "chaos_resend.json"])
def test_the_totals_are_those_of_the_channels(name: str) -> None:
    recorded: dict[str, Any] = json.loads((ROOT / "lab" / "bench" / name).read_text())
    channels = [Figures(**each) for each in recorded["by_channel"].values()]
    for total in ("sent_twice", "declared", "lost"):
        assert recorded[total] == sum(getattr(each, total) for each in channels)
    assert recorded["messages"] == sum(each.put for each in channels)
    assert recorded["kills"] == sum(recorded["killed"].values())
